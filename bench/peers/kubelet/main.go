// Command kubelet runs only the kubelet's status manager and pod manager, for the comparison in
// bench/sync.py: it flips all pods of a node on request.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/status"
)

func main() {
	// Errors still go to stderr; other messages would appear between the benchmark's lines.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := run(context.Background(), newLines()); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, lines *lines) error {
	var options start
	if more, err := lines.next(&options); !more {
		return err
	}
	node, err := newNode(ctx, options)
	if err != nil {
		return err
	}
	if err := lines.out.Encode(node.started()); err != nil {
		return err
	}
	for {
		var next order
		if more, err := lines.next(&next); !more {
			return err
		}
		if err := lines.out.Encode(node.obey(next)); err != nil {
			return err
		}
	}
}

// node holds the managers of a kubelet, and the counters of the last burst.
type node struct {
	pods     kubepod.Manager
	statuses status.Manager
	requests *atomic.Int64
	// Counters at the start of the last burst.
	requestsThen int64
	cpuThen      float64
}

func newNode(ctx context.Context, options start) (*node, error) {
	n := &node{pods: kubepod.NewBasicPodManager(), requests: &atomic.Int64{}}
	client, err := newClient(options, n.requests)
	if err != nil {
		return nil, err
	}
	if err := feed(ctx, client, options.Node, n.pods); err != nil {
		return nil, err
	}
	n.statuses = status.NewManager(client, n.pods, nothingRuns{}, noLatency{})
	n.statuses.Start(ctx)
	return n, nil
}

func (n *node) started() started {
	pods := n.pods.GetPods()
	return started{Pods: len(pods), Ready: len(pods) > 0 && podutil.IsPodReady(pods[0])}
}

func (n *node) obey(next order) any {
	if next.Ready != nil {
		return n.flip(*next.Ready)
	}
	return report{
		CPUSeconds: cpuSeconds() - n.cpuThen,
		Requests:   n.requests.Load() - n.requestsThen,
	}
}

func (n *node) flip(ready bool) set {
	pods := n.pods.GetPods()
	flips := make([]v1.PodStatus, len(pods))
	for i, pod := range pods {
		flips[i] = flipped(pod, ready)
	}
	n.requestsThen, n.cpuThen = n.requests.Load(), cpuSeconds()
	began := time.Now()
	for i, pod := range pods {
		n.statuses.SetPodStatus(klog.Background(), pod, flips[i])
	}
	return set{BeganNs: began.UnixNano()}
}

// flipped returns the pod's status with all containers ready or unready.
func flipped(pod *v1.Pod, ready bool) v1.PodStatus {
	s := pod.Status.DeepCopy()
	for i := range s.ContainerStatuses {
		s.ContainerStatuses[i].Ready = ready
	}
	for _, condition := range []v1.PodCondition{
		status.GeneratePodReadyCondition(pod, s, s.Conditions, s.ContainerStatuses, s.Phase),
		status.GenerateContainersReadyCondition(pod, s, s.ContainerStatuses, s.Phase),
	} {
		if i, _ := podutil.GetPodConditionFromList(s.Conditions, condition.Type); i >= 0 {
			s.Conditions[i] = condition
		}
	}
	return *s
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

type nothingRuns struct{}

func (nothingRuns) PodCouldHaveRunningContainers(*v1.Pod) bool { return false }

type noLatency struct{}

func (noLatency) RecordStatusUpdated(*v1.Pod)     {}
func (noLatency) DeletePodStartupState(types.UID) {}
