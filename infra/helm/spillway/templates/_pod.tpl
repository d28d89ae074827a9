{{/* Labels and annotations of the pods of a component. Takes (list root component values). */}}
{{- define "spillway.pod.metadata" -}}
{{- $values := index . 2 -}}
labels: {{- include "spillway.labels" (list (index . 0) (index . 1) $values.podLabels) | nindent 2 }}
{{- with $values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The identity of the pods. */}}
{{- define "spillway.serviceAccount" -}}
{{- default (ternary (include "spillway.name" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{/*
What the pods of every component have in common: they pass the "restricted" pod security standard and hold no token. OpenShift
refuses the user and groups of our choice, and gives each namespace its own.
*/}}
{{- define "spillway.pod.common" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- if not (or .Values.openshift (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  {{- end }}
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "spillway.container.security" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end -}}

{{/* Requests equal limits, in whole cores: a fraction of a core would stop a hash half-way through every period. */}}
{{- define "spillway.container.resources" -}}
resources:
  requests: { cpu: {{ .cores | quote }}, memory: {{ .memory }} }
  limits: { cpu: {{ .cores | quote }}, memory: {{ .memory }} }
{{- end -}}

{{/* Spread over zones and nodes where that can be had, or as the values say. Takes (list root component). */}}
{{- define "spillway.pod.spread" -}}
topologySpreadConstraints:
  {{- with (index (index . 0).Values (index . 1)).topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  {{- $selector := include "spillway.selector" . }}
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- $selector | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
{{- end -}}

{{/* The nodes that a component may run on. Takes its values. The migration and the tests go where gateways go. */}}
{{- define "spillway.pod.nodes" -}}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $ $field }}
{{ dict $field . | toYaml }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A variable from a Secret that is there already. Takes (list name reference). */}}
{{- define "spillway.env.secret" -}}
{{- $reference := index . 1 -}}
- name: {{ index . 0 }}
  valueFrom: { secretKeyRef: { name: {{ $reference.secret }}, key: {{ $reference.key }} } }
{{- end -}}

{{/* Where `$(POD_IP)` in config.listenHost comes from. */}}
{{- define "spillway.env.podIp" -}}
- name: POD_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
{{- end -}}

{{/* A private certificate authority that Redis's or PostgreSQL's certificate comes from. */}}
{{- define "spillway.ca.env" -}}
{{- if .Values.tls.ca.secret }}
- { name: NODE_EXTRA_CA_CERTS, value: /etc/spillway/ca/ca.crt }
{{- end }}
{{- end -}}

{{/* Where a container has its volumes: the certificate authority, and what the values add. Takes (list root values). */}}
{{- define "spillway.mounts" -}}
{{- if (index . 0).Values.tls.ca.secret }}
- { name: ca, mountPath: /etc/spillway/ca, readOnly: true }
{{- end }}
{{- with (index . 1).extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- define "spillway.volumes" -}}
{{- with (index . 0).Values.tls.ca }}
{{- if .secret }}
- name: ca
  secret: { secretName: {{ .secret }}, items: [{ key: {{ .key }}, path: ca.crt }] }
{{- end }}
{{- end }}
{{- with (index . 1).extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
