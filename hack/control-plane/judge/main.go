// The judge answers which nodes kube-scheduler's filters accept for a pod, with no API server.
//
// Each line of standard input is a world: its Kubernetes objects, and pods to be judged in it one by one. Each line of
// standard output answers the world on the same line of the input. Objects are defaulted, prepared and validated by the
// API server's own code; the filters are those of a kube-scheduler with its default configuration, whose informers
// watch a clientset that holds these objects. Only the loop that takes pods from the queue does not run.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	core "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const (
	longestLine  = 1 << 28
	handlersTake = 5 * time.Millisecond
	patience     = 30 * time.Second
)

// World is one line of the input. Every object and pod has its apiVersion and kind. Score asks for scores too.
type World struct {
	Objects []json.RawMessage `json:"objects"`
	Probes  []json.RawMessage `json:"probes"`
	Score   bool              `json:"score"`
}

// Answer is one line of the output: an error, or Filters, the names of the profile's filter plugins, and the rest. Objects, and the pods of verdicts, are as the API server would have stored them.
type Answer struct {
	Error    string           `json:"error"`
	Filters  []string         `json:"filters"`
	Objects  []runtime.Object `json:"objects"`
	Verdicts []Verdict        `json:"verdicts"`
}

// Verdict names each node once, among the feasible or the refused.
type Verdict struct {
	Pod      *v1.Pod            `json:"pod"`
	Feasible []string           `json:"feasible"`
	Refused  map[string]Refusal `json:"refused"`
	Scores   map[string]Scores  `json:"scores,omitempty"`
}

// Scores are by plugin the weighed scores of one feasible node.
type Scores map[string]int64

// Refusal says which plugin refuses the node and why. Failed: the plugin fails there, and kube-scheduler tries the pod
// again later.
type Refusal struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
	Failed  bool     `json:"failed,omitempty"`
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(discard{})
	// Without this gate no pod can ask for what the feature of this name gives it.
	if err := utilfeature.DefaultMutableFeatureGate.Set("UserNamespacesHostNetworkSupport=true"); err != nil {
		fail(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		answer, err := judged(lines.Bytes())
		if err != nil {
			answer = Answer{Error: err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			fail(err)
		}
	}
	if err := lines.Err(); err != nil {
		fail(err)
	}
}

type discard struct{}

func (discard) Write(written []byte) (int, error) { return len(written), nil }

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func judged(line []byte) (Answer, error) {
	var world World
	if err := json.Unmarshal(line, &world); err != nil {
		return Answer{}, err
	}
	stored, err := storedAll(world.Objects)
	if err != nil {
		return Answer{}, err
	}
	probes, err := storedAll(world.Probes)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fit, snapshot, err := started(ctx, stored)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Objects: stored, Verdicts: []Verdict{}}
	for _, plugin := range fit.ListPlugins().Filter.Enabled {
		answer.Filters = append(answer.Filters, plugin.Name)
	}
	for _, probe := range probes {
		pod, is := probe.(*v1.Pod)
		if !is {
			return Answer{}, fmt.Errorf("a probe is a %T, not a pod", probe)
		}
		verdict, err := verdict(ctx, fit, snapshot, pod, world.Score)
		if err != nil {
			return Answer{}, fmt.Errorf("%s: %w", pod.Name, err)
		}
		answer.Verdicts = append(answer.Verdicts, verdict)
	}
	return answer, nil
}

func storedAll(raw []json.RawMessage) ([]runtime.Object, error) {
	found := []runtime.Object{}
	for _, each := range raw {
		object, err := stored(each)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, each)
		}
		found = append(found, object)
	}
	return found, nil
}

// stored is what the API server makes of a created object before any admission plugin sees it. Pods also get what its
// strategy merges into their selectors and are validated; their status and UID are kept.
func stored(raw []byte) (runtime.Object, error) {
	object, kind, err := legacyscheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	if pod, is := object.(*core.Pod); is {
		if err := prepare(pod); err != nil {
			return nil, err
		}
	}
	version := schema.GroupVersion{Group: kind.Group, Version: kind.Version}
	versioned, err := legacyscheme.Scheme.ConvertToVersion(object, version)
	if err != nil {
		return nil, err
	}
	versioned.GetObjectKind().SetGroupVersionKind(*kind)
	return versioned, nil
}

func prepare(pod *core.Pod) error {
	status := pod.Status
	ctx := genericapirequest.WithNamespace(context.Background(), pod.Namespace)
	podregistry.Strategy.PrepareForCreate(ctx, pod)
	if wrong := podregistry.Strategy.Validate(ctx, pod); len(wrong) > 0 {
		return wrong.ToAggregate()
	}
	if !reflect.DeepEqual(status, core.PodStatus{}) {
		if status.Phase == "" {
			status.Phase = core.PodPending
		}
		pod.Status = status
	}
	if pod.UID == "" {
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	}
	return nil
}

func started(ctx context.Context, objects []runtime.Object) (framework.Framework, *internalcache.Snapshot, error) {
	var watched []runtime.Object
	for _, object := range objects {
		if pod, is := object.(*v1.Pod); is && (pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed) {
			continue // kube-scheduler's field selector; the clientset knows none.
		}
		watched = append(watched, object.DeepCopyObject())
	}
	client := fake.NewSimpleClientset(watched...)
	factory := informers.NewSharedInformerFactory(client, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}) // It is never started.
	sched, err := scheduler.New(ctx, client, factory, nil, profile.NewRecorderFactory(broadcaster))
	if err != nil {
		return nil, nil, err
	}
	factory.Start(ctx.Done())
	if err := synced(ctx, factory, sched); err != nil {
		return nil, nil, err
	}
	fit := sched.Profiles[v1.DefaultSchedulerName]
	snapshot := fit.SnapshotSharedLister().(*internalcache.Snapshot)
	return fit, snapshot, sched.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot)
}

// synced waits until the scheduler's cache knows all objects. The scheduler itself looks only every 100 ms, which would
// take most of the time, so it is asked when the handlers have probably been called.
func synced(ctx context.Context, factory informers.SharedInformerFactory, sched *scheduler.Scheduler) error {
	factory.WaitForCacheSync(ctx.Done())
	time.Sleep(handlersTake)
	return sched.WaitForHandlersSync(ctx)
}

func verdict(ctx context.Context, fit framework.Framework, snapshot *internalcache.Snapshot, pod *v1.Pod, score bool) (Verdict, error) {
	found := Verdict{Pod: pod, Feasible: []string{}, Refused: map[string]Refusal{}}
	nodes, err := snapshot.List()
	if err != nil {
		return found, err
	}
	state := framework.NewCycleState()
	chosen, status, plugins := fit.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return found, status.AsError()
	}
	feasible := []fwk.NodeInfo{}
	for _, node := range nodes {
		name := node.Node().Name
		said := status
		if status.IsSuccess() {
			if !chosen.AllNodes() && !chosen.NodeNames.Has(name) {
				names := plugins.UnsortedList()
				sort.Strings(names)
				found.Refused[name] = Refusal{Plugin: strings.Join(names, ","), Reasons: []string{"PreFilter"}}
				continue
			}
			said = fit.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		}
		switch {
		case said.IsSuccess():
			found.Feasible = append(found.Feasible, name)
			feasible = append(feasible, node)
		case said.IsRejected():
			found.Refused[name] = Refusal{Plugin: said.Plugin(), Reasons: said.Reasons()}
		case said.Plugin() == dynamicresources.Name:
			found.Refused[name] = Refusal{Plugin: said.Plugin(), Reasons: said.Reasons(), Failed: true}
		default:
			return found, said.AsError()
		}
	}
	if score && len(feasible) > 0 {
		found.Scores, err = scores(ctx, fit, state, pod, feasible)
	}
	return found, err
}

func scores(ctx context.Context, fit framework.Framework, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo) (map[string]Scores, error) {
	if status := fit.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return nil, status.AsError()
	}
	scored, status := fit.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	found := map[string]Scores{}
	for _, node := range scored {
		found[node.Name] = Scores{}
		for _, each := range node.Scores {
			found[node.Name][each.Name] = each.Score
		}
	}
	return found, nil
}
