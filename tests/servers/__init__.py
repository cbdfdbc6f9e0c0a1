"""One suite, two servers: what is true of a real kube-apiserver is true of the embedded one."""
