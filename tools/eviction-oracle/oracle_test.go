// An oracle for podstatus.eviction.decide: it reads calls, one JSON document per line, runs them
// with the kubelet's eviction manager, and writes each call with its result.
//
// It runs as a test inside of a copy of the package, since the package exports none of its
// decisions; see README.md.
package eviction

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	testingclock "k8s.io/utils/clock/testing"
)

// repetitions of a scenario: the kubelet iterates over maps, so that one of several thresholds is
// reclaimed at random. Each of up to eight is missed with a probability below 1e-7.
const repetitions = 128

var start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

type call struct {
	Fn   string          `json:"fn"`
	Args json.RawMessage `json:"args"`
}

type answered struct {
	Fn     string          `json:"fn"`
	Source string          `json:"source"`
	Args   json.RawMessage `json:"args"`
	Result any             `json:"result"`
}

type settings struct {
	EnforceNodeAllocatable  []string          `json:"enforceNodeAllocatable"`
	EvictionHard            map[string]string `json:"evictionHard"`
	EvictionSoft            map[string]string `json:"evictionSoft"`
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod"`
	EvictionMinimumReclaim  map[string]string `json:"evictionMinimumReclaim"`
}

type layout struct {
	DedicatedImageFs      bool `json:"dedicatedImageFs"`
	SplitContainerImageFs bool `json:"splitContainerImageFs"`
}

func TestOracle(t *testing.T) {
	klog.SetLogger(klog.Logger{})
	in, err := os.Open(os.Getenv("EVICTION_CASES"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(os.Getenv("EVICTION_VECTORS"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	writer := bufio.NewWriter(out)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	for number := 1; lines.Scan(); number++ {
		var it call
		mustDecode(lines.Bytes(), &it)
		answer, found := functions[it.Fn]
		if !found {
			t.Fatalf("line %d: no function %q", number, it.Fn)
		}
		if err := encoder.Encode(answered{it.Fn, "generated", it.Args, answer(it.Args)}); err != nil {
			t.Fatal(err)
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
}

var functions = map[string]func(json.RawMessage) any{
	"ParseThresholdConfig":        parseThresholdConfig,
	"UpdateContainerFsThresholds": updateContainerFsThresholds,
	"makeSignalObservations":      signalObservationsOf,
	"thresholdsMet":               thresholdsMetOf,
	"rankPods":                    rankPods,
	"evictionMessage":             evictionMessageOf,
	"localStorageEviction":        localStorageEvictionOf,
	"Admit":                       admit,
	"synchronize":                 synchronize,
}

func mustDecode(text []byte, into any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		panic(fmt.Sprintf("%v in %.2000s", err, text))
	}
}

// Thresholds

func (s settings) parse() ([]evictionapi.Threshold, error) {
	return ParseThresholdConfig(s.EnforceNodeAllocatable, s.EvictionHard, s.EvictionSoft, s.EvictionSoftGracePeriod, s.EvictionMinimumReclaim)
}

func (s settings) thresholds() []evictionapi.Threshold {
	thresholds, err := s.parse()
	if err != nil {
		panic(err)
	}
	return thresholds
}

type valueRecord struct {
	Quantity   string  `json:"quantity,omitempty"`
	Percentage float64 `json:"percentage,omitempty"`
}

type thresholdRecord struct {
	Signal      evictionapi.Signal `json:"signal"`
	Value       valueRecord        `json:"value"`
	GracePeriod int64              `json:"gracePeriod,omitempty"`
	MinReclaim  *valueRecord       `json:"minReclaim,omitempty"`
}

func recordOfValue(value evictionapi.ThresholdValue) valueRecord {
	if value.Quantity != nil {
		return valueRecord{Quantity: value.Quantity.String()}
	}
	return valueRecord{Percentage: float64(value.Percentage)}
}

// recordsOf sorts, since the order comes from a map, and leaves out thresholds without an
// operator: those that stand for a missing one, and are never met.
func recordsOf(thresholds []evictionapi.Threshold) []thresholdRecord {
	records := []thresholdRecord{}
	for _, threshold := range thresholds {
		if threshold.Operator == "" {
			continue
		}
		it := thresholdRecord{Signal: threshold.Signal, Value: recordOfValue(threshold.Value), GracePeriod: int64(threshold.GracePeriod)}
		if threshold.MinReclaim != nil {
			reclaim := recordOfValue(*threshold.MinReclaim)
			it.MinReclaim = &reclaim
		}
		records = append(records, it)
	}
	sort.SliceStable(records, func(i, j int) bool { return textOf(records[i]) < textOf(records[j]) })
	return records
}

func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func parseThresholdConfig(text json.RawMessage) any {
	var args settings
	mustDecode(text, &args)
	thresholds, err := args.parse()
	if err != nil {
		return map[string]any{"error": true}
	}
	return map[string]any{"thresholds": recordsOf(thresholds)}
}

func updateContainerFsThresholds(text json.RawMessage) any {
	var args struct {
		Settings settings `json:"settings"`
		Layout   layout   `json:"layout"`
	}
	mustDecode(text, &args)
	thresholds, _ := UpdateContainerFsThresholds(args.Settings.thresholds(), args.Layout.DedicatedImageFs, args.Layout.SplitContainerImageFs)
	return recordsOf(thresholds)
}

// Observations

func signalObservationsOf(text json.RawMessage) any {
	var args struct {
		Summary statsapi.Summary `json:"summary"`
	}
	mustDecode(text, &args)
	observations, _ := makeSignalObservations(klog.Logger{}, &args.Summary)
	result := map[evictionapi.Signal]any{}
	for signal, observed := range observations {
		it := map[string]any{"available": observed.available.Value(), "capacity": observed.capacity.Value(), "printed": observed.available.String()}
		if !observed.time.IsZero() {
			it["time"] = observed.time.UTC().Format(time.RFC3339)
		}
		result[signal] = it
	}
	return result
}

func thresholdsMetOf(text json.RawMessage) any {
	var args struct {
		Settings          settings         `json:"settings"`
		Summary           statsapi.Summary `json:"summary"`
		EnforceMinReclaim bool             `json:"enforceMinReclaim"`
	}
	mustDecode(text, &args)
	observations, _ := makeSignalObservations(klog.Logger{}, &args.Summary)
	return recordsOf(thresholdsMet(klog.Logger{}, args.Settings.thresholds(), observations, args.EnforceMinReclaim))
}

// Pods

func rankPods(text json.RawMessage) any {
	var args struct {
		Signal   evictionapi.Signal  `json:"signal"`
		Pods     []*v1.Pod           `json:"pods"`
		PodStats []statsapi.PodStats `json:"podStats"`
		Layout   layout              `json:"layout"`
	}
	mustDecode(text, &args)
	rank := buildSignalToRankFunc(args.Layout.DedicatedImageFs, args.Layout.SplitContainerImageFs)[args.Signal]
	rank(args.Pods, cachedStatsFunc(args.PodStats))
	return namesOf(args.Pods)
}

func namesOf(pods []*v1.Pod) []string {
	names := []string{}
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

func evictionMessageOf(text json.RawMessage) any {
	var args struct {
		Signal    evictionapi.Signal  `json:"signal"`
		Pod       *v1.Pod             `json:"pod"`
		PodStats  []statsapi.PodStats `json:"podStats"`
		Threshold string              `json:"threshold"`
		Available int64               `json:"available"`
		Capacity  int64               `json:"capacity"`
	}
	mustDecode(text, &args)
	threshold, err := parseThresholdStatement(args.Signal, args.Threshold)
	if err != nil {
		panic(err)
	}
	format := resource.BinarySI
	if strings.HasSuffix(string(args.Signal), "inodesFree") || args.Signal == evictionapi.SignalPIDAvailable {
		format = resource.DecimalSI
	}
	observations := signalObservations{args.Signal: {
		available: resource.NewQuantity(args.Available, format),
		capacity:  resource.NewQuantity(args.Capacity, format),
	}}
	message, annotations := evictionMessage(signalToResource[args.Signal], args.Pod, cachedStatsFunc(args.PodStats), []evictionapi.Threshold{*threshold}, observations)
	return map[string]any{"message": message, "annotations": annotations}
}

func localStorageEvictionOf(text json.RawMessage) any {
	var args struct {
		Pods     []*v1.Pod           `json:"pods"`
		PodStats []statsapi.PodStats `json:"podStats"`
		Layout   layout              `json:"layout"`
	}
	mustDecode(text, &args)
	it := &machine{}
	manager := it.manager(args.Layout, Config{})
	manager.dedicatedImageFs = &args.Layout.DedicatedImageFs
	evicted := manager.localStorageEviction(klog.Logger{}, args.Pods, cachedStatsFunc(args.PodStats))
	if !slices.Equal(namesOf(evicted), it.killed()) {
		panic("what was killed is not what was evicted")
	}
	return it.evictions()
}

func admit(text json.RawMessage) any {
	var args struct {
		Pod            *v1.Pod                `json:"pod"`
		NodeConditions []v1.NodeConditionType `json:"nodeConditions"`
	}
	mustDecode(text, &args)
	manager := (&machine{}).manager(layout{}, Config{})
	manager.nodeConditions = args.NodeConditions
	result := manager.Admit(&lifecycle.PodAdmitAttributes{Pod: args.Pod})
	return map[string]any{"admit": result.Admit, "reason": result.Reason, "message": result.Message}
}

// The manager's surroundings: they record what it does.

type evictionRecord struct {
	Pod         string            `json:"pod"`
	GracePeriod int64             `json:"gracePeriod"`
	Status      v1.PodStatus      `json:"status"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type outcome struct {
	Attempt   string           `json:"attempt,omitempty"`
	Reclaimed []string         `json:"reclaimed,omitempty"`
	Evictions []evictionRecord `json:"evictions,omitempty"`
}

type machine struct {
	record.EventRecorder
	layout  layout
	summary *statsapi.Summary
	after   *statsapi.Summary
	pending map[string]string
	did     outcome
}

func (m *machine) manager(where layout, config Config) *managerImpl {
	m.layout = where
	manager, _ := NewManager(m, config, m.kill, m, m, m, &v1.ObjectReference{Kind: "Node", Name: "n"}, testingclock.NewFakeClock(start), true)
	return manager.(*managerImpl)
}

func (m *machine) killed() []string {
	names := []string{}
	for _, it := range m.did.Evictions {
		names = append(names, it.Pod)
	}
	return names
}

func (m *machine) evictions() []evictionRecord {
	return append([]evictionRecord{}, m.did.Evictions...)
}

func (m *machine) Eventf(_ runtime.Object, _, reason, format string, args ...interface{}) {
	if reason != "EvictionThresholdMet" {
		panic(reason)
	}
	m.did.Attempt = fmt.Sprintf(format, args...)
}

func (m *machine) AnnotatedEventf(_ runtime.Object, annotations map[string]string, eventType, reason, format string, args ...interface{}) {
	if eventType != v1.EventTypeWarning || reason != Reason {
		panic(reason)
	}
	m.pending = annotations
}

func (m *machine) kill(pod *v1.Pod, isEvicted bool, grace *int64, change func(*v1.PodStatus)) error {
	status := v1.PodStatus{}
	change(&status)
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime.Reset()
	}
	if !isEvicted {
		panic("not marked as evicted")
	}
	m.did.Evictions = append(m.did.Evictions, evictionRecord{pod.Name, *grace, status, m.pending})
	return nil
}

func (m *machine) Get(context.Context, bool) (*statsapi.Summary, error) { return m.summary, nil }

func (m *machine) GetCPUAndMemoryStats(context.Context) (*statsapi.Summary, error) {
	return m.summary, nil
}

func (m *machine) HasDedicatedImageFs(context.Context) (bool, error) {
	return m.layout.DedicatedImageFs, nil
}

func (m *machine) HasDedicatedContainerFs(context.Context) (bool, error) {
	return m.layout.SplitContainerImageFs, nil
}

func (m *machine) DeleteUnusedImages(context.Context) error {
	return m.reclaim("DeleteUnusedImages")
}

func (m *machine) DeleteAllUnusedContainers(context.Context) error {
	return m.reclaim("DeleteAllUnusedContainers")
}

func (m *machine) reclaim(what string) error {
	m.did.Reclaimed = append(m.did.Reclaimed, what)
	if m.after != nil {
		m.summary = m.after
	}
	return nil
}

// Scenarios

type scenario struct {
	Settings                 settings `json:"settings"`
	PressureTransitionPeriod int64    `json:"pressureTransitionPeriod"`
	MaxPodGracePeriodSeconds int64    `json:"maxPodGracePeriodSeconds"`
	LocalStorage             bool     `json:"localStorageCapacityIsolation"`
	Layout                   layout   `json:"layout"`
	Pods                     []v1.Pod `json:"pods"`
	Steps                    []struct {
		Advance int64             `json:"advance"`
		Summary *statsapi.Summary `json:"summary"`
		After   *statsapi.Summary `json:"after"`
		Active  []int             `json:"active"`
	} `json:"steps"`
}

type stepRecord struct {
	Conditions []string            `json:"conditions"`
	Met        []thresholdRecord   `json:"met"`
	Outcomes   map[string]*outcome `json:"-"`
	Possible   []*outcome          `json:"outcomes"`
}

func synchronize(text json.RawMessage) any {
	var args scenario
	mustDecode(text, &args)
	records := make([]stepRecord, len(args.Steps))
	for range repetitions {
		args.run(records)
	}
	for i := range records {
		for _, possible := range records[i].Outcomes {
			records[i].Possible = append(records[i].Possible, possible)
		}
		slices.SortFunc(records[i].Possible, (*outcome).compare)
	}
	return records
}

// compare orders by what is attempted and reclaimed, then pod, grace period and message of the eviction.
func (o *outcome) compare(other *outcome) int {
	if order := cmp.Or(strings.Compare(o.Attempt, other.Attempt), slices.Compare(o.Reclaimed, other.Reclaimed)); order != 0 {
		return order
	}
	return slices.CompareFunc(o.Evictions, other.Evictions, func(a, b evictionRecord) int {
		return cmp.Or(
			strings.Compare(a.Pod, b.Pod),
			cmp.Compare(a.GracePeriod, b.GracePeriod),
			strings.Compare(a.Status.Message, b.Status.Message),
		)
	})
}

func (s *scenario) run(records []stepRecord) {
	it := &machine{}
	manager := it.manager(s.Layout, Config{
		PressureTransitionPeriod: time.Duration(s.PressureTransitionPeriod),
		MaxPodGracePeriodSeconds: s.MaxPodGracePeriodSeconds,
		Thresholds:               s.Settings.thresholds(),
	})
	manager.localStorageCapacityIsolation = s.LocalStorage
	fakeClock := manager.clock.(*testingclock.FakeClock)
	// The first cycle of a manager ignores the containerfs thresholds that it derives: its list is
	// read before they are added. So it sees a node without figures.
	it.summary = &statsapi.Summary{}
	if _, err := manager.synchronize(context.Background(), it, func() []*v1.Pod { return nil }); err != nil {
		panic(err)
	}
	for i, step := range s.Steps {
		fakeClock.Step(time.Duration(step.Advance))
		it.summary, it.after, it.did = step.Summary, step.After, outcome{}
		active := func() []*v1.Pod {
			pods := []*v1.Pod{}
			for _, index := range step.Active {
				pods = append(pods, s.Pods[index].DeepCopy())
			}
			return pods
		}
		if _, err := manager.synchronize(context.Background(), it, active); err != nil {
			panic(err)
		}
		records[i].add(manager, it.did)
	}
}

func (r *stepRecord) add(manager *managerImpl, did outcome) {
	conditions := []string{}
	for _, condition := range manager.nodeConditions {
		conditions = append(conditions, string(condition))
	}
	sort.Strings(conditions)
	// Two thresholds may be equal: a soft one without a grace period is hard.
	met := slices.CompactFunc(recordsOf(manager.thresholdsMet), func(a, b thresholdRecord) bool {
		return textOf(a) == textOf(b)
	})
	if r.Outcomes == nil {
		r.Outcomes, r.Conditions, r.Met = map[string]*outcome{}, conditions, met
	}
	if !slices.Equal(r.Conditions, conditions) || textOf(r.Met) != textOf(met) {
		panic("the state depends on the order of a map")
	}
	r.Outcomes[textOf(did)] = &did
}
