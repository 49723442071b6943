import { randomUUID } from 'node:crypto';
import { createCluster } from '../../../actors/cluster/cluster.ts';
import { createClusterPhones } from '../../../actors/cluster/cluster-phones.ts';
import { createPhoneDesk } from '../../../actors/phones/phone-desk.actor.ts';
import type { ConnectedPhone, PhoneHolder, PhoneNotice } from '../../../actors/phones/phone-desk.ts';
import type { LegEvent } from '../../../machines/events.ts';
import { systemClock } from '../../../runtime/clock.ts';
import type { Sql } from '../../../storage/database.ts';
import type { NodeRow } from '../../../storage/queries/nodes.ts';
import { createTestClock, createTestLogger } from '../fakes.ts';
import { FakeWebRtc } from '../phones/fake-webrtc.ts';
import { RelayHub } from './relay-hub.ts';

export const HOLDER: PhoneHolder = {
  ...{ workspaceId: 'workspace-1', userId: 7, purpose: 'agent', callId: null },
  credentials: { apiKeyId: 3, expiresAt: '2026-01-31T09:31:00.000Z' },
};
export const AGENT = { workspaceId: 'workspace-1', userId: 7, purpose: 'agent' } as const;

export type PhoneNode = ReturnType<typeof openPhoneNodes>['nodes'][number];

/** Connected nodes; `lose` makes one forget the others. */
export function openPhoneNodes(count: number, sql: Sql) {
  const hub = new RelayHub();
  const boots = Array.from({ length: count }, () => randomUUID());
  const rowOf = (boot: string) => ({ node: `node-of-${boot}`, boot }) as NodeRow;
  const nodes = boots.map((boot) => {
    let peers = boots.filter((other) => other !== boot).map(rowOf);
    const listeners: ((rows: NodeRow[]) => void)[] = [];
    const directory = {
      ...{ node: rowOf(boot).node, boot, peers: () => peers },
      onRenewed(listener: (rows: NodeRow[]) => void) {
        listeners.push(listener);
        listener(peers);
      },
    };
    const [logger, clock, webRtc] = [createTestLogger(), createTestClock(), new FakeWebRtc()];
    const openRelay = async () => hub.connect(boot);
    const cluster = createCluster({ nodes: directory, openRelay, clock: systemClock, logger });
    const local = createPhoneDesk({ boot, webRtc, clock, logger });
    const phones = createClusterPhones({ local, cluster, nodes: directory, sql, logger });
    const lose = () => {
      peers = [];
      renew();
    };
    const renew = () => {
      for (const listener of listeners) listener(peers);
    };
    return { boot, local, phones, clock, webRtc, logger, lose, renew };
  });
  return { hub, nodes };
}

export async function connect({ phones }: PhoneNode, token: string, by: 'connect' | 'resume' = 'connect') {
  const notices: PhoneNotice[] = [];
  const closed: number[] = [];
  const phone = await phones[by](token, {
    send: (notice) => void notices.push(notice),
    close: (code) => void closed.push(code),
  });
  return { phone: phone as ConnectedPhone, notices, closed, types: () => notices.map(({ type }) => type) };
}

export function dial({ phones }: PhoneNode, callId = 'call_1') {
  const events: LegEvent[] = [];
  const abort = new AbortController();
  const call = {
    call_id: callId,
    reference_id: 'order-1',
    leg_id: 'agent',
    role: 'agent',
    customer_number: null,
  } as const;
  const leg = phones.dial({
    ...{ ...AGENT, call, localMedia: { host: '127.0.0.1', rtpPort: 20_000 } },
    ...{ signal: abort.signal, onEvent: (event) => void events.push(event) },
  });
  return { leg, events, abort, types: () => events.map(({ type }) => type) };
}
