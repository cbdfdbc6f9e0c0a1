"""Invalid manifests, and the expected messages."""

from tests.support.manifests import WEB, named

POD = "document 1, pod default/web: "
ONE = "document 1: "
DNS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    r" validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KIND = "use apiVersion v1 and kind Pod"
OBJECT = "expected an object of apiVersion v1 and kind Pod, found"
CONTAINER = "spec.containers[0]"

BAD: dict[str, tuple[str | bytes, str]] = {
    # Neither text, YAML nor JSON.
    "empty": ("", "empty; add a Pod, or remove the manifest"),
    "only a comment": ("# later\n---\n", "empty; add a Pod, or remove the manifest"),
    "not UTF-8": (b"\xff\xfe\x00", "not valid UTF-8"),
    "too large": (b"#" * (10 * 2**20 + 1), "larger than 10 MiB"),
    "too many documents": ("---\na\n" * 1001, "more than 1000 documents"),
    "a control character": (
        "a: \x07",
        (
            f"{ONE}neither YAML nor JSON: unacceptable character #x0007: control characters "
            'are not allowed in "<unicode string>", position 3'
        ),
    ),
    "a colon too many": (
        WEB.replace("name: web", "name: web: site"),
        f"{ONE}line 4: mapping values are not allowed in this context",
    ),
    "a tab": (
        WEB.replace("  name: web", "\tname: web"),
        f"{ONE}line 4: tab character; use spaces",
    ),
    "a tab in the second document": (
        "# one\n---\n# none\n---\n" + WEB.replace("  name: web", "\tname: web"),
        f"{ONE}line 8: tab character; use spaces",
    ),
    "a bracket too few": ('{"kind": "Pod"', f"{ONE}line 1: expecting ',' delimiter"),
    "a key twice": (WEB + "kind: Pod\n", f'{ONE}line 9: key "kind" already set in map'),
    "a key twice in JSON": ('{"a": 1, "a": 2}', f'{ONE}key "a" already set in map'),
    "an unknown tag": (
        "kind: !pod {}",
        f"{ONE}line 1: could not determine a constructor for the tag '!pod'",
    ),
    "an alias of nothing": ("kind: *x", f"{ONE}line 1: found undefined alias"),
    "an alias of itself": ("&a [*a]", f"{ONE}line 1: alias refers to itself"),
    "aliases that explode": (
        "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 7)),
        f"{ONE}aliases expand to too much data; write the values out",
    ),
    "deep YAML": ("[" * 5000, f"{ONE}nested too deeply"),
    "deep JSON": ('{"a":' * 100_000, f"{ONE}nested too deeply"),
    "a number that JSON has not": (
        "a: .inf",
        f"{ONE}a value cannot be represented in JSON: inf",
    ),
    **{
        f"a value that is no {tag}": (
            f"a: !!{tag} {value}",
            f"{ONE}a value does not match its tag",
        )
        for tag, value in [("int", "''"), ("float", "''"), ("bool", "maybe"), ("timestamp", "x")]
    },
    "a number that is too long": (
        '{"a": ' + "9" * 5000 + "}",
        f"{ONE}a number is too long",
    ),
    "a number that is too large": (
        WEB.replace("spec:", f"spec:\n  activeDeadlineSeconds: 0x{'f' * 500}"),
        (
            f"{POD}json: cannot unmarshal number {str(16**500 - 1)[:100]} into Go struct field "
            "PodSpec.spec.activeDeadlineSeconds of type int64"
        ),
    ),
    "a number beyond its type": (
        WEB.replace("spec:", "spec:\n  priority: 2147483648"),
        (
            f"{POD}json: cannot unmarshal number 2147483648 into Go struct field "
            "PodSpec.spec.priority of type int32"
        ),
    ),
    "half a character": (
        r'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": "\ud800"}',
        f"{POD}contains an unpaired UTF-16 surrogate",
    ),
    # Not a pod.
    "a list": ("- a", f"{ONE}{OBJECT} a list"),
    "a text": ("hello", f"{ONE}{OBJECT} a string"),
    "a number": ("42", f"{ONE}{OBJECT} a number"),
    "a boolean": ("true", f"{ONE}{OBJECT} a boolean"),
    "a deployment": (
        WEB.replace("v1", "apps/v1").replace("Pod", "Deployment"),
        f'{ONE}apiVersion is "apps/v1" and kind is "Deployment"; {KIND}',
    ),
    "no kind": (
        WEB.replace("kind: Pod\n", ""),
        f'{ONE}apiVersion is "v1" and kind is missing; {KIND}',
    ),
    "a list of another version": (
        "apiVersion: v2\nkind: List\nitems: []\n",
        f'{ONE}apiVersion is "v2" and kind is "List"; {KIND}',
    ),
    "a list of no list": (
        "apiVersion: v1\nkind: List\nitems: web\n",
        f"{ONE}items: expected a list of pods",
    ),
    "a list with a stranger in it": (
        "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Service}]\n",
        f'{ONE}apiVersion is "v1" and kind is "Service"; {KIND}',
    ),
    "a list with an unknown field": (
        "apiVersion: v1\nkind: PodList\nitem: []\n",
        f'{ONE}strict decoding error: unknown field "item"',
    ),
    # Fields.
    "an unknown field": (
        WEB.replace("containers", "contaners"),
        f'{POD}strict decoding error: unknown field "spec.contaners"',
    ),
    "several unknown fields": (
        WEB.replace("image:", "imag:") + "state: {}\n",
        f'{POD}strict decoding error: unknown field "{CONTAINER}.imag", unknown field "state"',
    ),
    "a field of the wrong case": (
        named("web", RestartPolicy="Never"),
        f'{POD}strict decoding error: unknown field "spec.RestartPolicy"',
    ),
    "a number for a text": (
        WEB.replace("busybox", "42"),
        f"{POD}{CONTAINER}.image: expected str, got int",
    ),
    "a text for a list": (
        WEB + "    command: sleep\n",
        f"{POD}{CONTAINER}.command: expected list, got str",
    ),
    "a list for an object": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: []\n",
        f"{POD}spec: expected object, got list",
    ),
    "a fraction of a second": (
        named("web", terminationGracePeriodSeconds="1.5"),
        f"{POD}spec.terminationGracePeriodSeconds: expected int, got float",
    ),
    "a port of two": (
        WEB + "    ports: [{containerPort: 80:80}]\n",
        f"{POD}{CONTAINER}.ports[0].containerPort: expected int, got str",
    ),
    "a quantity that is none": (
        WEB + "    resources: {limits: {memory: 1 GB}}\n",
        (
            f"{POD}{CONTAINER}.resources.limits[...]: quantity '1 GB' has suffix ' GB'; a number "
            "with an optional suffix is expected, such as 2, 0.5, 100m, 64Mi or 1e3"
        ),
    ),
    # Rules.
    "no name": (
        WEB.replace("  name: web", "  labels: {a: b}"),
        f"{ONE}metadata.name: Required value: name is needed for the pod",
    ),
    "a bad name": (
        WEB.replace("web", "Web_1"),
        (
            "document 1, pod default/Web_1: "
            f'invalid pod: metadata.name: Invalid value: "Web_1-node-1": {DNS}'
        ),
    ),
    "no containers": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n",
        f"{POD}invalid pod: spec.containers: Required value",
    ),
    "a container twice": (
        WEB + "  - name: a\n    image: b\n",
        f'{POD}invalid pod: spec.containers[1].name: Duplicate value: "a"',
    ),
    "no image": (
        WEB.replace("    image: busybox\n", ""),
        f"{POD}invalid pod: {CONTAINER}.image: Required value",
    ),
    "a restart policy that is none": (
        named("web", restartPolicy="Sometimes"),
        (
            f'{POD}invalid pod: spec.restartPolicy: Unsupported value: "Sometimes": '
            'supported values: "Always", "OnFailure", "Never"'
        ),
    ),
    "two mistakes": (
        named("web", restartPolicy="Sometimes", dnsPolicy="Mine"),
        (
            f'{POD}invalid pod: [spec.restartPolicy: Unsupported value: "Sometimes": '
            'supported values: "Always", "OnFailure", "Never", '
            'spec.dnsPolicy: Unsupported value: "Mine": supported values: '
            '"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]'
        ),
    ),
    "more requested than allowed": (
        WEB + "    resources: {limits: {cpu: 1}, requests: {cpu: 2}}\n",
        (
            f'{POD}invalid pod: {CONTAINER}.resources.requests: Invalid value: "2": '
            "must be less than or equal to cpu limit of 1"
        ),
    ),
    "a mirror pod": (
        WEB.replace("  name: web", "  name: web\n  annotations: {kubernetes.io/config.mirror: x}"),
        (
            f"{POD}invalid pod: metadata.annotations[kubernetes.io/config.mirror]: Forbidden: "
            "only mirror pods may have this annotation"
        ),
    ),
    # References that a static pod must not have.
    "a service account": (
        named("web", serviceAccountName="me"),
        f"{POD}static pods may not reference serviceaccounts",
    ),
    "a secret": (
        named("web", volumes="[{name: v, secret: {secretName: s}}]"),
        f"{POD}static pods may not reference secrets (via secret volumes)",
    ),
    "a config map and a secret": (
        WEB + "    envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}}]\n",
        f"{POD}static pods may not reference configmaps, secrets",
    ),
}
