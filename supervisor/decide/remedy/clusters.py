"""Restarts and redeployments by kubectl, helm and other cluster tools. Pure. Called from ``decide.remedy``."""

from collections.abc import Sequence

from supervisor.decide.remedy.words import (
    Hits,
    Options,
    Reader,
    each_of,
    file_name,
    has,
    name_in,
    named,
    parse,
    pod_name,
    replica_set_name,
    service_name,
    split_verb,
    surely,
    values_of,
)
from supervisor.model.permission import ActionKind
from supervisor.model.reading import Command, Word

_RESTART, _REDEPLOY = ActionKind.RESTART, ActionKind.REDEPLOY

_KUBECTL = each_of(
    "-n --namespace --context --cluster --user --kubeconfig -s --server --token --as --as-group --as-uid",
    "--certificate-authority --client-certificate --client-key --request-timeout --tls-server-name --cache-dir",
    "-v --v --vmodule --username --password --profile --profile-output -f --filename -k --kustomize -l --selector",
    "--field-selector -o --output --replicas --current-replicas --resource-version --timeout --grace-period",
    "-p --patch --patch-file --type --subresource --field-manager -c --containers --to-revision --revision",
    "--template -e --env --from --keys --prefix --limits --requests --image --port --overrides --override-type",
    "--raw --prune-allowlist --prune-whitelist --applyset --min --max --cpu-percent --name --pod-selector",
    "--loglevel --labels --annotations --restart --image-pull-policy --pod-running-timeout --serviceaccount --schedule",
)
_HELM = each_of(
    "-n --namespace --kube-context --kubeconfig --kube-apiserver --kube-as-group --kube-as-user --kube-ca-file",
    "--kube-token --kube-tls-server-name --registry-config --repository-cache --repository-config --burst-limit --qps",
    "-f --values --set --set-string --set-file --set-json --set-literal --version --timeout --repo --description",
    "--post-renderer --post-renderer-args --history-max -o --output --username --password --ca-file --cert-file",
    "--key-file --keyring --name-template -l --labels --cascade",
)
_NOMAD = each_of(
    "-address -region -namespace -ca-cert -ca-path -client-cert -client-key -tls-server-name -token -var -var-file",
    "-check-index -consul-namespace -vault-namespace -task -group -batch-size -batch-wait",
)

# Taking one of these away, or changing it, stops no service by itself.
_PASSIVE = each_of(
    "configmap configmaps cm secret secrets event events ev job jobs cronjob cronjobs cj lease leases",
    "role roles rolebinding rolebindings clusterrole clusterroles clusterrolebinding clusterrolebindings",
    "serviceaccount serviceaccounts sa hpa horizontalpodautoscaler horizontalpodautoscalers",
    "poddisruptionbudget poddisruptionbudgets pdb certificatesigningrequest certificatesigningrequests csr",
)
_PODS = frozenset({"pod", "pods", "po"})
_REPLICA_SETS = frozenset({"replicaset", "replicasets", "rs"})
_WHOLE = frozenset({"all", "namespace", "namespaces", "ns", "node", "nodes", "no", "project", "projects"})

_KUBECTL_VERBS = each_of("rollout delete scale autoscale set patch edit apply replace create run drain taint argo")
_ROLLOUT = {"restart": _RESTART, "undo": _REDEPLOY, "resume": _REDEPLOY, "latest": _REDEPLOY, "retry": _REDEPLOY}
_ARGO_ROLLOUTS = {"restart": _RESTART} | dict.fromkeys(("promote", "abort", "undo", "retry", "set"), _REDEPLOY)
_HELM_VERBS = frozenset({"upgrade", "install", "rollback", "uninstall", "delete", "del", "un"})


def kubectl(command: Command) -> Hits:
    """``kubectl`` and ``oc``."""
    return _kubectl(command.argv[1:])


def kubectl_inside(command: Command) -> Hits:
    """``k3s kubectl …``, ``microk8s kubectl …``, ``minikube kubectl -- …``."""
    _, verb, rest = split_verb(command.argv[1:], each_of("-p --profile"), ("kubectl",))
    if verb is not None and not verb.static:
        yield _RESTART, None
    elif verb is not None and verb.text == "kubectl":
        yield from _kubectl(rest[1:] if rest and rest[0].text == "--" else rest)


def helm(command: Command) -> Hits:
    """``helm``: releases by their names."""
    before, verb, rest = split_verb(command.argv[1:], _HELM, _HELM_VERBS)
    if verb is None or (verb.static and verb.text not in _HELM_VERBS):
        return
    after, words, _ = parse(rest, _HELM)
    options = before + after
    if not verb.static:
        yield _REDEPLOY, None
    elif not (surely(options, "--dry-run") or _rehearses(options)):
        if verb.text in ("uninstall", "delete", "del", "un"):
            yield from named(_REDEPLOY, words)
        else:
            # A third word is the value of an option that is not known here: then nobody knows which is the release.
            unclear = len(words) > 2 or has(options, "-g", "--generate-name", "--name-template")
            yield from named(_REDEPLOY, [] if unclear else words[:1])


def nomad(command: Command) -> Hits:
    """``nomad``: jobs by name or file; an allocation does not tell whose it is."""
    _, verb, rest = split_verb(command.argv[1:], _NOMAD, ("job", "run", "stop", "alloc", "node"))
    if verb is not None and verb.static and verb.text == "job":
        _, verb, rest = split_verb(rest, _NOMAD, ("run", "restart", "stop", "scale", "revert"))
    if verb is None:
        return
    _, words, _ = parse(rest, _NOMAD)
    if not verb.static:
        yield _RESTART, None
    elif verb.text == "run":
        yield from named(_REDEPLOY, words, file_name)
    elif verb.text in ("restart", "stop"):
        yield from named(_RESTART, words)
    elif verb.text in ("scale", "revert"):
        yield from named(_REDEPLOY, words[:1])
    elif verb.text in ("alloc", "node") and _first_is(words, "restart", "stop", "signal", "drain"):
        yield _RESTART, None


def argocd(command: Command) -> Hits:
    """``argocd app sync NAME`` and kin."""
    valued = each_of(
        "--server --auth-token --config --grpc-web-root-path -H --header -l --selector --revision --resource --label"
    )
    options, words, _ = parse(command.argv[1:], valued)
    if not all(word.static for word in words[:2]):
        yield _REDEPLOY, None
    elif len(words) > 1 and words[0].text in ("app", "apps"):
        verb, rest = words[1].text, words[2:]
        if verb in ("sync", "rollback", "set", "unset", "patch", "patch-resource", "delete", "delete-resource"):
            chosen = [] if has(options, "-l", "--selector") else rest if verb == "sync" else rest[:1]
            yield from named(_REDEPLOY, chosen)
        elif verb == "actions" and _first_is(rest, "run"):
            yield from named(_RESTART, rest[1:2])


def flux(command: Command) -> Hits:
    """``flux reconcile KIND NAME``."""
    valued = each_of("-n --namespace --context --kubeconfig --timeout")
    _, words, _ = parse(command.argv[1:], valued)
    if words and not words[0].static:
        yield _REDEPLOY, None
    elif words and words[0].text in ("reconcile", "delete"):
        yield from named(_REDEPLOY, words[2:][-1:])


def _kubectl(arguments: Sequence[Word]) -> Hits:
    before, verb, rest = split_verb(arguments, _KUBECTL, _KUBECTL_VERBS)
    if verb is None or (verb.static and verb.text not in _KUBECTL_VERBS):
        return
    after, words, _ = parse(rest, _KUBECTL)
    options = before + after
    if not verb.static:
        yield _RESTART, None
        return
    if _rehearses(options):
        return
    match verb.text:
        case "rollout":
            yield from _by_subcommand(_ROLLOUT, options, words)
        case "argo":
            yield from _argo_rollouts(words)
        case "delete":
            yield from _resources(_RESTART, options, words)
        case "scale" | "autoscale":
            for kind in _kinds_of_scaling(options):
                yield from _resources(kind, options, words)
        case "set":
            if not surely(options, "--list"):
                yield from _set(options, words)
        case "patch" | "edit":
            yield from _resources(_REDEPLOY, options, words)
        case "apply" | "replace" | "create":
            yield from _from_files(verb.text, options, words)
        case "run":
            yield from named(_REDEPLOY, words[:1])
        case _:
            yield _RESTART, None  # drain and taint empty a machine of whatever runs there


def _by_subcommand(kinds: dict[str, ActionKind], options: Options, words: Sequence[Word]) -> Hits:
    if not words:
        return
    if not words[0].static:
        yield _RESTART, None
    elif kind := kinds.get(words[0].text):
        yield from _resources(kind, options, words[1:])


def _argo_rollouts(words: Sequence[Word]) -> Hits:
    """``kubectl argo rollouts restart NAME``; ``set image NAME container=image``."""
    if not all(word.static for word in words[:2]):
        yield _RESTART, None
    elif len(words) > 2 and (kind := _ARGO_ROLLOUTS.get(words[1].text)):
        yield from named(kind, words[3:4] if words[1].text == "set" else words[2:])


def _set(options: Options, words: Sequence[Word]) -> Hits:
    """``set image deployment/web app=image``: what is set stands behind the resources."""
    if words and not words[0].static:
        yield _REDEPLOY, None
    elif words:
        targets = [word for word in words[1:] if not word.static or not ("=" in word.text or word.text.endswith("-"))]
        yield from _resources(_REDEPLOY, options, targets)


def _from_files(verb: str, options: Options, words: Sequence[Word]) -> Hits:
    files = values_of(options, "-f", "--filename")
    if files or has(options, "-k", "--kustomize"):
        yield from _files(_REDEPLOY, options, files)
    elif any(not word.static for word in words):
        yield _REDEPLOY, None
    elif verb == "create" and _first_is(words, "deployment", "deploy"):
        yield from named(_REDEPLOY, words[1:2])
    elif verb == "apply" and _first_is(words, "edit-last-applied"):
        yield from _resources(_REDEPLOY, options, words[1:])


def _files(kind: ActionKind, options: Options, files: Sequence[Word]) -> Hits:
    if has(options, "-k", "--kustomize", "-R", "--recursive"):
        yield kind, None
    for word in files:
        for name in word.text.split(","):
            yield kind, file_name(name) if word.static else None


def _resources(kind: ActionKind, options: Options, words: Sequence[Word]) -> Hits:
    """``TYPE/NAME …``, ``TYPE NAME …``, ``TYPE,TYPE NAME …`` or the contents of a file."""
    files = values_of(options, "-f", "--filename")
    if files or has(options, "-k", "--kustomize"):
        yield from _files(kind, options, files)
        return
    if not words or not words[0].static:
        yield kind, None
        return
    if "/" in words[0].text:
        pairs = [(word.text.rpartition("/")[0], word) for word in words]
    else:
        pairs = [(words[0].text, word) for word in words[1:]]
        if not pairs and not _all_passive(words[0].text):
            yield kind, None
    by_property = has(options, "--all", "-l", "--selector", "--field-selector")
    for types, word in pairs:
        if _all_passive(types) and not (word.splits and "/" in word.text):
            continue
        yield kind, None if by_property else _owner(types, word)


def _all_passive(types: str) -> bool:
    return all(_plain_type(one) in _PASSIVE for one in types.split(","))


def _plain_type(text: str) -> str:
    return text.partition(".")[0].lower()


def _owner(types: str, word: Word) -> str | None:
    """The name of the service that a resource belongs to."""
    plain = {_plain_type(one) for one in types.split(",")}
    if plain & _WHOLE:
        return None
    if plain & _PODS:
        return name_in(word, pod_name)
    return name_in(word, replica_set_name if plain & _REPLICA_SETS else service_name)


def _kinds_of_scaling(options: Options) -> tuple[ActionKind, ...]:
    """To none is taking it down. When the number is not known, it may be either."""
    counts = values_of(options, "--replicas")
    if any(not count.static for count in counts):
        return (_RESTART, _REDEPLOY)
    return (_RESTART,) if any(count.text.strip("0") == "" for count in counts) else (_REDEPLOY,)


def _rehearses(options: Options) -> bool:
    """Whether it is only shown what would be done."""
    given = [value for name, value in options if name == "--dry-run"]
    return bool(given) and all(
        value is not None and value.static and value.text in ("client", "server", "true") for value in given
    )


def _first_is(words: Sequence[Word], *verbs: str) -> bool:
    return any(not word.static or word.text in verbs for word in words[:1])


READERS: dict[str, Reader] = {
    **dict.fromkeys(("kubectl", "oc", "kubecolor", "microk8s.kubectl"), kubectl),
    **dict.fromkeys(("k3s", "k0s", "microk8s", "minikube"), kubectl_inside),
    "helm": helm,
    "nomad": nomad,
    "argocd": argocd,
    "flux": flux,
}
