import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Platform, startPlatform } from '../calls/platform.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';
import { peerAvailable, type RunningPeer, runPeer, untilListening } from '../peers/programs.ts';
import { ROOT } from '../root.ts';

const OPS = join(ROOT, 'ops');

interface AlertRules {
  groups: { rules: { alert: string; expr: string }[] }[];
}

interface Dashboard {
  panels: { title: string; targets?: { expr: string }[] }[];
}

const alerts = (parse(await readFile(join(OPS, 'prometheus/alerts.yml'), 'utf8')) as AlertRules).groups.flatMap(
  ({ rules }) => rules,
);
const dashboard = JSON.parse(await readFile(join(OPS, 'grafana/tandem.json'), 'utf8')) as Dashboard;
/** With Grafana's variables filled in. */
const dashboardQueries = dashboard.panels.flatMap(({ targets = [] }) =>
  targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*')),
);
const queries = [...dashboardQueries, ...alerts.map(({ expr }) => expr)];

let platform: Platform;
let folder: string;

beforeAll(async () => {
  platform = await startPlatform();
  folder = await mkdtemp(join(tmpdir(), 'tandem-prometheus-'));
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function scraped(): Promise<string> {
  return await (await fetch(`${platform.tandem.url}/metrics`)).text();
}

describe('files in ops/', () => {
  it('use only metrics of the platform', async () => {
    const served = new Set([...(await scraped()).matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name));
    const used = new Set(queries.flatMap((query) => query.match(/\b(?:tandem|nodejs|process)_\w+/g) ?? []));
    expect(used.size).toBeGreaterThan(25);
    const missing = [...used].filter(
      (name) => !served.has(name) && !served.has(name.replace(/_(bucket|count|sum)$/, '')),
    );
    expect(missing).toEqual([]);
  });

  it('cover every metric of the platform on the dashboard or in an alert', async () => {
    const served = [...(await scraped()).matchAll(/^# TYPE (tandem_\S+) /gm)].map(([, name]) => name!);
    expect(served.filter((name) => !queries.some((query) => query.includes(name)))).toEqual([]);
  });

  it('include a unit test for every alert', async () => {
    const tests = await readFile(join(OPS, 'prometheus/alerts.test.yml'), 'utf8');
    expect(alerts.filter(({ alert }) => !tests.includes(`alertname: ${alert}\n`))).toEqual([]);
  });

  it('match the guide, which lists every metric and alert', async () => {
    const guide = await readFile(join(ROOT, 'docs/operations.md'), 'utf8');
    const served = [...(await scraped()).matchAll(/^# TYPE (tandem_\S+) /gm)].map(([, name]) => name!);
    const names = [...served, ...alerts.map(({ alert }) => alert)];
    expect(names.filter((name) => !guide.includes(`\`${name}\``))).toEqual([]);
  });
});

describe.skipIf(!peerAvailable('promtool'))('promtool', () => {
  it('accepts the configuration and the rules, and passes their unit tests', async () => {
    for (const args of [
      ['check', 'config', 'prometheus.yml'],
      ['check', 'rules', 'alerts.yml'],
      ['test', 'rules', 'alerts.test.yml'],
    ]) {
      const run = runPeer('promtool', { args, cwd: join(OPS, 'prometheus') });
      expect([await run.exited, args, run.output()]).toEqual([0, args, expect.any(String)]);
    }
  });

  it('accepts the names and types of the metrics', async () => {
    const run = runPeer('promtool', { args: ['check', 'metrics'], cwd: folder });
    run.child.stdin.end(await scraped());
    await run.exited;
    // Names of prom-client and Node that other dashboards use.
    const complaints = run
      .output()
      .split('\n')
      .filter((line) => line.startsWith('tandem_'));
    expect(complaints).toEqual([]);
  });
});

describe.skipIf(!peerAvailable('prometheus'))('Prometheus scraping the platform', () => {
  let prometheus: RunningPeer;
  let url: string;

  beforeAll(async () => {
    await cp(join(OPS, 'prometheus'), folder, { recursive: true });
    const config = join(folder, 'prometheus.yml');
    const target = new URL(platform.tandem.url).host;
    const text = (await readFile(config, 'utf8')).replace('127.0.0.1:8080', target).replaceAll('15s', '1s');
    await writeFile(config, text);
    const port = await freePorts(1);
    url = `http://127.0.0.1:${port}`;
    prometheus = runPeer('prometheus', {
      args: [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
      ],
      cwd: folder,
    });
    await untilListening(port, 'tcp', prometheus);
  });
  afterAll(() => prometheus.stop());

  async function ask<Data>(path: string, parameters: Record<string, string> = {}): Promise<Data> {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`);
    const answer = (await response.json()) as { status: string; data: Data; error?: string };
    expect([answer.status, answer.error, parameters]).toEqual(['success', undefined, parameters]);
    return answer.data;
  }

  it('reads the metrics without errors and finds live calls', async () => {
    await eventually(async () => {
      const { activeTargets } = await ask<{ activeTargets: { health: string; lastError: string }[] }>('targets');
      expect(activeTargets).toMatchObject([{ health: 'up', lastError: '' }]);
    });
    const { agent } = await platform.parties();
    const call = await platform.place();
    await platform.until(call.call_id, 'call.bridged');
    await eventually(async () => {
      const { result } = await ask<{ result: { value: [number, string] }[] }>('query', {
        query: 'sum(tandem_calls{state="bridged",job="tandem"})',
      });
      expect(result[0]?.value[1]).toBe('1');
    });
    agent.hangup();
    await platform.ended(call.call_id);
  });

  it('evaluates every alert rule, and fires none on a healthy platform', async () => {
    interface Rules {
      groups: { rules: { name: string; health: string; lastError?: string; state: string }[] }[];
    }
    await eventually(async () => {
      const { groups } = await ask<Rules>('rules');
      const rules = groups.flatMap((group) => group.rules);
      expect(rules.map(({ name }) => name)).toEqual(alerts.map(({ alert }) => alert));
      expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
      expect(rules.filter(({ state }) => state === 'firing')).toEqual([]);
    });
  });

  it('evaluates every query of the dashboard', async () => {
    expect(dashboardQueries.length).toBeGreaterThan(30);
    for (const query of dashboardQueries) await ask('query', { query });
  });

  it('fires the alert of a missing platform', async () => {
    await platform.tandem.stop();
    await eventually(async () => {
      const { result } = await ask<{ result: { metric: { alertname: string } }[] }>('query', {
        query: 'ALERTS{alertname="TandemDown",alertstate="pending"}',
      });
      expect(result).toHaveLength(1);
    });
  });
});
