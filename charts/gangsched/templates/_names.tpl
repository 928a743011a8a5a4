{{/* The name of everything in the release's namespace: the release's, with the chart's unless it is in it already. */}}
{{- define "gangsched.name" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of what has no namespace: releases of one name in two namespaces do not share it. */}}
{{- define "gangsched.clusterName" -}}
{{- printf "%s-%s" (include "gangsched.name" .) .Release.Namespace | trunc 120 | trimSuffix "-" -}}
{{- end -}}

{{- define "gangsched.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "gangsched.name" .) -}}
{{- else -}}
{{- required "serviceAccount.create is false: name the account that the operator uses, with --set serviceAccount.name=NAME." .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "gangsched.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gangsched.labels" -}}
{{ include "gangsched.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The image, or a failure that says how to make one. */}}
{{- define "gangsched.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if not .Values.image.repository -}}
{{- fail (printf `image.repository is not set, and there is no public image of gangsched. Build and push one from the root of the repository, with your registry in place of REGISTRY:

    docker build -t REGISTRY/gangsched:%s .
    docker push REGISTRY/gangsched:%s

then run helm again with --set image.repository=REGISTRY/gangsched` $tag $tag) -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}

{{/* The operator's settings, with a Lease of the release's own so that two releases never share one. */}}
{{- define "gangsched.config" -}}
{{- $lease := dict "resourceName" (include "gangsched.name" .) "resourceNamespace" .Release.Namespace -}}
{{- $own := dict "dialects" .Values.dialects "workloads" .Values.workloads -}}
{{- if .Values.page.enabled -}}
{{- $_ := set $own "page" (dict "enabled" true "port" .Values.page.port) -}}
{{- end -}}
{{- mergeOverwrite (dict "leaderElection" $lease) (deepCopy .Values.config) $own | toYaml -}}
{{- end -}}

{{/* Why the chart leaves the CustomResourceDefinition alone, empty if it installs it. Without a cluster nothing is known. */}}
{{- define "gangsched.crdOwner" -}}
{{- if not .Values.crds.install -}}
crds.install is false
{{- else -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "podgroups.gangsched.io" -}}
{{- if $found -}}
{{- $notes := $found.metadata.annotations | default dict -}}
{{- $name := get $notes "meta.helm.sh/release-name" -}}
{{- $namespace := get $notes "meta.helm.sh/release-namespace" -}}
{{- if not $name -}}
it was installed without helm
{{- else if or (ne $name .Release.Name) (ne $namespace .Release.Namespace) -}}
it belongs to the release {{ $name }} in namespace {{ $namespace }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gangsched.httpPort" -}}8080{{- end -}}
