{{/* The name of everything: the release's, with the chart's unless it is in it already. */}}
{{- define "gangsched.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gangsched.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
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
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}

{{/* The operator's settings, with a Lease of the release's own so that two releases never share one. */}}
{{- define "gangsched.config" -}}
{{- $lease := dict "resourceName" (include "gangsched.name" .) "resourceNamespace" .Release.Namespace -}}
{{- mergeOverwrite (dict "leaderElection" $lease) (deepCopy .Values.config) (dict "dialects" .Values.dialects "workloads" .Values.workloads) | toYaml -}}
{{- end -}}
