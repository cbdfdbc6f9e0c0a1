package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
)

// newClient returns a client configured like the kubelet's: protobuf if the server supports it, HTTP/2.
func newClient(options start, requests *atomic.Int64) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(&rest.Config{
		Host:            options.Server,
		BearerToken:     options.Token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: options.Authority},
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
		QPS:   options.QPS,
		Burst: options.Burst,
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return counting{next: next, requests: requests}
		},
	})
}

type counting struct {
	next     http.RoundTripper
	requests *atomic.Int64
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.next.RoundTrip(request)
}

// feed starts an informer that keeps the pod manager up to date with the node's pods.
func feed(ctx context.Context, client kubernetes.Interface, node string, pods kubepod.Manager) error {
	onNode := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	factory := informers.NewSharedInformerFactoryWithOptions(
		client, 0, informers.WithTweakListOptions(onNode))
	informer := factory.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { pods.AddPod(object.(*v1.Pod)) },
		UpdateFunc: func(_, object any) { pods.UpdatePod(object.(*v1.Pod)) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return errors.New("the pods were not listed")
	}
	return nil
}
