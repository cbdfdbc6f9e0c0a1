"""What becomes of silent nodes and their pods: on the embedded server, and on kube-apiserver with
kube-controller-manager."""
