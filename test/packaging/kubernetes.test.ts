import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { StatefulSet } from 'kubernetes-types/apps/v1.js';
import type { ConfigMap, Secret, Service } from 'kubernetes-types/core/v1.js';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { loadConfig } from '../../config.ts';
import { pathOf } from '../peers/programs.ts';
import { ROOT } from '../root.ts';
import { packageJson, settingNames, textOf } from './repository.ts';

const FOLDER = 'ops/kubernetes';
const run = promisify(execFile);

interface Manifest {
  apiVersion: string;
  kind: string;
}

function read<Kind extends Manifest>(file: string): Kind[] {
  return parseAllDocuments(textOf(`${FOLDER}/${file}`)).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Kind;
  });
}

type Required<Kind> = Kind & Manifest;
const [set] = read<Required<StatefulSet>>('statefulset.yaml') as [Required<StatefulSet>];
const [config] = read<Required<ConfigMap>>('config.yaml') as [Required<ConfigMap>];
const [secret] = read<Required<Secret>>('secret.example.yaml') as [Required<Secret>];
const [budget] = read<Required<PodDisruptionBudget>>('disruption-budget.yaml') as [Required<PodDisruptionBudget>];
const services = read<Required<Service>>('services.yaml');
const pod = set.spec!.template;
const [container] = pod.spec!.containers as [NonNullable<typeof pod.spec>['containers'][number]];

describe('Kubernetes manifests', () => {
  it('use only fields of Kubernetes', async () => {
    const files = (await readdir(join(ROOT, FOLDER))).filter((file) => file !== 'kustomization.yaml');
    const manifests = files.flatMap((file) => read(file));
    expect(manifests.map(({ kind }) => kind).sort()).toEqual(
      ['ConfigMap', 'Namespace', 'PodDisruptionBudget', 'Secret', 'Service', 'Service', 'StatefulSet'].sort(),
    );
    expect(await typeErrors(manifests)).toBe('');
    const misspelt = { ...budget, spec: { ...budget.spec, maxUnavailables: 1 } };
    expect(await typeErrors([misspelt])).toContain('maxUnavailables');
  });

  it.skipIf(pathOf('kubectl') === null)('build with kustomize, with the image named in one place', async () => {
    const { stdout } = await run('kubectl', ['kustomize', join(ROOT, FOLDER)]);
    const kinds = parseAllDocuments(stdout).map((document) => (document.toJS() as Manifest).kind);
    expect(kinds.sort()).toEqual([
      'ConfigMap',
      'Namespace',
      'PodDisruptionBudget',
      'Service',
      'Service',
      'StatefulSet',
    ]);
    expect(stdout).toContain(`image: registry.example.com/tandem:${packageJson().version}`);
  });

  it('select the pods by their labels', () => {
    const labels = pod.metadata?.labels;
    const [antiAffinity] = pod.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const selectors = [
      set.spec?.selector.matchLabels,
      budget.spec?.selector?.matchLabels,
      antiAffinity?.labelSelector?.matchLabels,
      pod.spec?.topologySpreadConstraints?.[0]?.labelSelector?.matchLabels,
      ...services.map(({ spec }) => spec?.selector),
    ];
    for (const selector of selectors) expect(selector).toEqual(labels);
    expect(services.map(({ metadata }) => metadata?.name)).toContain(set.spec?.serviceName);
  });

  it('contain only existing settings, which the server accepts', () => {
    const settings = { ...config.data, ...secret.stringData };
    const fromPod = (container.env ?? []).map(({ name }) => name);
    const names = [...Object.keys(settings), ...fromPod];
    expect(names.filter((name) => !settingNames().includes(name))).toEqual([]);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    expect(Object.values(secret.stringData ?? {}).filter((value) => value !== '')).toEqual([]);
    const address = Object.fromEntries(fromPod.map((name) => [name, '192.0.2.11']));
    const read = loadConfig({ ...settings, ...address }, [], '/nonexistent/.env');
    expect(read).toMatchObject({ host: '0.0.0.0', sipHost: '192.0.2.11', rtpHost: '192.0.2.11' });
  });

  it('take all settings from the ConfigMap and the Secret', () => {
    expect(container.envFrom).toEqual([
      { configMapRef: { name: config.metadata?.name } },
      { secretRef: { name: secret.metadata?.name } },
    ]);
  });

  it('let Prometheus find the metrics, with a token to read them from another machine', () => {
    expect(pod.metadata?.annotations).toMatchObject({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': config.data?.PORT,
      'prometheus.io/path': '/metrics',
    });
    expect(secret.stringData).toHaveProperty('METRICS_TOKEN');
  });

  it('name the ports of the settings, on the host network', () => {
    expect(pod.spec?.hostNetwork).toBe(true);
    const { PORT, SIP_PORT, WEBRTC_PORT } = config.data ?? {};
    const ports = (container.ports ?? []).map(({ name, containerPort }) => [name, String(containerPort)]);
    expect(ports).toEqual([
      ['http', PORT],
      ['sip-udp', SIP_PORT],
      ['sip-tcp', SIP_PORT],
      ['webrtc', WEBRTC_PORT],
    ]);
    for (const { spec } of services) expect(spec?.ports?.map(({ targetPort }) => targetPort)).toEqual(['http']);
    expect(pod.metadata?.annotations?.['prometheus.io/port']).toBe(PORT);
  });

  it('probe liveness and readiness of the server', () => {
    const paths = [container.startupProbe, container.livenessProbe, container.readinessProbe].map(
      (probe) => probe?.httpGet,
    );
    expect(paths).toEqual(['/healthz', '/healthz', '/readyz'].map((path) => ({ path, port: 'http' })));
  });

  it('let live calls finish before a pod is killed', () => {
    const drainS = Number(/DRAIN_MS = ([\d_]+)/.exec(textOf('main.ts'))?.[1]?.replaceAll('_', '')) / 1000;
    const beforeS = Number(container.lifecycle?.preStop?.exec?.command?.[1]);
    expect(drainS).toBeGreaterThan(0);
    expect(beforeS).toBeGreaterThan(0);
    expect(pod.spec?.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(beforeS + drainS + 20);
    expect(budget.spec?.maxUnavailable).toBe(1);
  });

  it('keep the data folder of each pod, owned by the user of the image', () => {
    const [claim] = set.spec?.volumeClaimTemplates ?? [];
    const mounts = container.volumeMounts ?? [];
    expect(mounts).toContainEqual({ name: claim?.metadata?.name, mountPath: config.data?.TANDEM_DATA_DIR });
    expect(set.spec?.persistentVolumeClaimRetentionPolicy).toEqual({ whenDeleted: 'Retain', whenScaled: 'Retain' });
    const [, user, group] = /^USER (\d+):(\d+)$/m.exec(textOf('Dockerfile')) ?? [];
    expect(pod.spec?.securityContext).toMatchObject({ runAsUser: Number(user), fsGroup: Number(group) });
  });
});

/** Type errors of the manifests against their TypeScript types. */
async function typeErrors(manifests: Manifest[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-manifests-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const lines = manifests.map(({ apiVersion, kind, ...manifest }, index) => {
    const path = join(ROOT, 'node_modules/kubernetes-types', apiVersion.includes('/') ? '' : 'core', apiVersion);
    const value = JSON.stringify({ apiVersion, kind, ...manifest }, null, 1);
    return `export const value${index}: import('${path}').${kind} = ${value};`;
  });
  const file = join(folder, 'manifests.ts');
  await writeFile(file, lines.join('\n'));
  const args = ['--noEmit', '--strict', '--module', 'preserve', '--types', '', file];
  const checked = run(join(ROOT, 'node_modules/.bin/tsc'), args, { cwd: folder });
  return await checked.then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  );
}
