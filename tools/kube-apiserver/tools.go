//go:build tools

// Package tools names what `make real-parts` builds, so that go.mod and go.sum hold all of it.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
