import { describe, expect, it } from 'vitest';
import { header, type SipMessage } from '../../../sip/message/index.ts';
import * as fc from '../../properties.ts';
import { CoreBench } from './core-bench.ts';

/** Timers that never fire, to inspect state that they would remove. */
const frozen = { after: () => () => {} };

function talking(bench: CoreBench): ReturnType<CoreBench['invite']> {
  const call = bench.invite();
  bench.answer(call.request, 200);
  bench.inDialog(call.dialogId, 'ACK');
  return call;
}

describe('requests in a dialog with a public peer', () => {
  it.each([
    { what: 'Contact', answer: { contact: 'sip:peer@10.0.0.9:5070' } },
    { what: 'Contact', answer: { contact: 'sip:peer@127.0.0.1:5070' } },
    {
      what: 'Contact over TLS',
      answer: { contact: 'sip:peer@10.0.0.9:5061;transport=tls', transport: 'tls' as const },
    },
    { what: 'Record-Route', answer: { headers: [['Record-Route', '<sip:192.168.0.1;lr>']] as [string, string][] } },
  ])('go to the source address of the peer despite a private address in $what', ({ answer }) => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    bench.answer(request, 200, 'peer-tag', { ...answer, from: '8.8.8.8' });
    bench.inDialog(dialogId, 'ACK');
    bench.inDialog(dialogId, 'BYE');
    expect(bench.destinations.slice(1)).toEqual(['8.8.8.8', '8.8.8.8']);
  });

  it('go to a private address if the peer is in a private network', () => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    bench.answer(request, 200, 'peer-tag', { contact: 'sip:peer@10.0.0.9:5070', from: '10.0.0.1' });
    bench.inDialog(dialogId, 'ACK');
    expect(bench.destinations.at(-1)).toBe('10.0.0.9');
  });
});

it('a call to a peer over TLS stays on the connection that proved its name, whichever one the peer uses', () => {
  const bench = new CoreBench();
  const { request, dialogId } = bench.invite();
  const contact = 'sip:peer@192.0.2.7;transport=tls';
  bench.answer(request, 200, 'peer-tag', { contact, transport: 'tls', connectionId: 1 });
  bench.inDialog(dialogId, 'ACK');
  bench.fromPeer(request, 'UPDATE', 1, contact, { transport: 'tls', port: 40_000, connectionId: 2 });
  bench.respond(bench.transactionOf('UPDATE'), 200);
  bench.inDialog(dialogId, 'BYE');
  expect(bench.requests('BYE')).toHaveLength(1);
  expect(bench.connections.at(-1)).toBe(1);
});

it.each([
  ['after two seconds if its caller lost the connection while it rang', [1], 2_000],
  ['after 32 seconds if its caller keeps the connection', [], 32_000],
])('an unacknowledged call ends %s', (_title, closed, afterMs) => {
  const bench = new CoreBench();
  bench.fromStranger('INVITE', 'call', { from: { transport: 'tcp', host: '8.8.8.8', port: 40_000, connectionId: 1 } });
  for (const connectionId of closed) bench.closed.add(connectionId);
  bench.respond(bench.transactionOf('INVITE'), 200);
  bench.clock.advance(afterMs - 1);
  expect(bench.requests('BYE')).toHaveLength(0);
  bench.clock.advance(1);
  expect(bench.requests('BYE')).toHaveLength(1);
});

describe('requests in a dialog with a caller behind NAT', () => {
  const contact = 'sip:caller@10.0.0.9:5070;transport=tcp';
  const over = (connectionId: number, host = '8.8.8.8') => ({
    contact,
    callId: 'call',
    from: { transport: 'tcp', host, port: 40_000 + connectionId, connectionId } as const,
  });

  it.each([
    ['go over its new connection after it has reconnected', over(2), 2],
    ['stay on its connection after a request from another host', over(2, '9.9.9.9'), 1],
  ])('%s', (_title, later, connectionId) => {
    const bench = new CoreBench();
    bench.fromStranger('INVITE', 'first', over(1));
    bench.respond(bench.transactionOf('INVITE'), 200);
    const answer = bench.responses(200, 'INVITE')[0]!;
    const to = header(answer, 'to')!;
    bench.fromStranger('ACK', 'first-ack', { ...over(1), to });
    bench.fromStranger('UPDATE', 'later', { ...later, to, sequence: 2 });
    bench.respond(bench.transactionOf('UPDATE'), 200);
    bench.inDialog('call;from-tag=call', 'BYE');
    expect(bench.requests('BYE')).toHaveLength(1);
    expect([bench.destinations.at(-1), bench.connections.at(-1)]).toEqual(['8.8.8.8', connectionId]);
  });
});

describe('endless forking', () => {
  it('creates a bounded number of dialogs and BYE requests', () => {
    const bench = new CoreBench();
    const { request } = bench.invite();
    for (let fork = 0; fork < 500; fork++) bench.answer(request, 180, `ringing-${fork}`);
    expect(bench.counts.dialogs).toBe(32);
    for (let fork = 0; fork < 500; fork++) bench.answer(request, 200, `answered-${fork}`);
    for (let fork = 0; fork < 500; fork++) bench.answer(request, 200, `ringing-${fork}`);
    expect(bench.requests('BYE').length).toBeLessThan(32);
  });
});

describe('a request flood', () => {
  it('still allows a known peer to hang up', () => {
    const bench = new CoreBench(frozen);
    const { request } = talking(bench);
    for (let count = 0; count < 30_000; count++) bench.fromStranger('OPTIONS', `flood-${count}`);
    bench.fromStranger('OPTIONS', 'one-more');
    expect(bench.responses(503, 'OPTIONS')).toHaveLength(1);
    bench.fromPeer(request, 'BYE', 1);
    bench.respond(bench.transactionOf('BYE'), 200);
    expect(bench.responses(200, 'BYE')).toHaveLength(1);
  });

  it('stays bounded in bytes', () => {
    const bench = new CoreBench(frozen);
    const body = 'x'.repeat(60_000);
    for (let count = 0; count < 3000; count++) bench.fromStranger('OPTIONS', `large-${count}`, { body });
    expect(bench.counts.transactions.incoming).toBeLessThan(2300);
    expect(bench.responses(503, 'OPTIONS').length).toBeGreaterThan(700);
  });
});

describe('in-dialog transactions', () => {
  it('accept a new target in an UPDATE (RFC 3311 section 5.2)', () => {
    const bench = new CoreBench();
    const { request, dialogId } = talking(bench);
    bench.fromPeer(request, 'UPDATE', 1, 'sip:moved@192.0.2.8');
    bench.respond(bench.transactionOf('UPDATE'), 200);
    bench.inDialog(dialogId, 'BYE');
    expect(bench.requests('BYE')[0]?.uri).toBe('sip:moved@192.0.2.8');
  });

  it('acknowledge a re-INVITE answer that crosses the BYE of the peer', () => {
    const bench = new CoreBench();
    const { request, dialogId } = talking(bench);
    bench.inDialog(dialogId, 'INVITE');
    const reinvite = bench.requests('INVITE').at(-1);
    bench.fromPeer(request, 'BYE', 1);
    const before = bench.requests('ACK').length;
    bench.answer(reinvite ?? request, 200);
    expect(bench.requests('ACK')).toHaveLength(before + 1);
  });

  it('acknowledge a repeated answer whose ACK was overtaken by the BYE of the peer', () => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    bench.answer(request, 200);
    bench.fromPeer(request, 'BYE', 1);
    bench.inDialog(dialogId, 'ACK');
    expect(bench.requests('ACK')).toHaveLength(0);
    bench.answer(request, 200);
    bench.answer(request, 200);
    expect(bench.requests('ACK')).toHaveLength(2);
  });

  it('stop repeating a re-INVITE answer after the BYE of the peer', () => {
    const bench = new CoreBench();
    const { request } = talking(bench);
    bench.fromPeer(request, 'INVITE', 1);
    bench.respond(bench.transactionOf('INVITE'), 200);
    bench.fromPeer(request, 'BYE', 2);
    bench.respond(bench.transactionOf('BYE'), 200);
    bench.clock.advance(60_000);
    expect(bench.responses(200, 'INVITE')).toHaveLength(1);
  });

  it('end although the peer challenges the BYE and the application gives up', () => {
    const bench = new CoreBench();
    const { dialogId } = talking(bench);
    bench.inDialog(dialogId, 'BYE');
    bench.answer(bench.requests('BYE')[0]!, 407);
    expect(bench.counts.dialogs).toBe(1);
    bench.clock.advance(60_000);
    expect(bench.counts.dialogs).toBe(0);
  });

  it('end a call whose Contact is unreachable, since it cannot be acknowledged', () => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    bench.answer(request, 200, 'peer-tag', { contact: 'sip:peer@192.0.2.7;transport=ws' });
    bench.inDialog(dialogId, 'ACK');
    expect(bench.delivered.at(-1)).toMatchObject({ transactionId: 'unsolicited', dialogId });
    expect(bench.counts.dialogs).toBe(0);
  });

  it.each(['', 'sip:peer@192.0.2.7:0'])('end a call with the Contact <%s> after its ACK', (contact) => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    bench.answer(request, 200, 'peer-tag', { contact });
    expect(bench.delivered.map(({ message }) => kindOf(message))).toEqual(['200']);
    bench.inDialog(dialogId, 'ACK');
    expect(bench.delivered.map(({ message }) => kindOf(message))).toEqual(['200', 'BYE']);
    expect(bench.sent.map(kindOf)).toEqual(['INVITE', 'ACK', 'BYE']);
    expect(bench.counts.dialogs).toBe(0);
  });
});

it('a caller that sends BYE before the answer cancels its call (RFC 3261 section 15)', () => {
  const bench = new CoreBench();
  bench.fromStranger('INVITE', 'call');
  const invited = bench.transactionOf('INVITE');
  bench.respond(invited, 180);
  const [ringing] = bench.responses(180, 'INVITE');
  bench.fromStranger('BYE', 'bye', { callId: 'call', sequence: 2, to: header(ringing!, 'to') ?? '' });
  expect(bench.delivered.at(-1)).toMatchObject({ transactionId: invited, message: { method: 'CANCEL' } });
  expect(bench.sent.slice(-2).map(kindOf)).toEqual(['487', '200']);
  expect(bench.counts.dialogs).toBe(0);
});

function kindOf(message: SipMessage): string {
  return message.kind === 'request' ? message.method : String(message.statusCode);
}

it('received calls with equal Call-ID and From tag get different ids', () => {
  const bench = new CoreBench();
  const ids = new Set<string | null>();
  for (const sequence of [1, 2, 3]) {
    bench.fromStranger('INVITE', `branch-${sequence}`, { callId: 'same', sequence });
    const result = bench.respond(bench.transactionOf('INVITE'), 180);
    ids.add(result?.ok ? result.dialogId : null);
  }
  expect(ids.size).toBe(3);
});

const STEPS = [
  (bench: CoreBench, call: Call) => bench.answer(call.request, 100),
  (bench: CoreBench, call: Call) => bench.answer(call.request, 180),
  (bench: CoreBench, call: Call) => bench.answer(call.request, 183, 'other-fork'),
  (bench: CoreBench, call: Call) => bench.answer(call.request, 200),
  (bench: CoreBench, call: Call) => bench.answer(call.request, 200, 'other-fork'),
  (bench: CoreBench, call: Call) => bench.answer(call.request, 200, 'third', { contact: 'sip:[broken' }),
  (bench: CoreBench, call: Call) => bench.answer(call.request, 486),
  (bench: CoreBench, call: Call) => bench.answer(call.request, 407),
  (bench: CoreBench, call: Call) => bench.answer(bench.requests('INVITE').at(-1) ?? call.request, 200),
  (bench: CoreBench, call: Call) => bench.answer(bench.requests('INVITE').at(-1) ?? call.request, 491),
  (bench: CoreBench, call: Call) => bench.answer(bench.requests('BYE').at(-1) ?? call.request, 200),
  (bench: CoreBench, call: Call) => bench.answer(bench.requests('CANCEL').at(-1) ?? call.request, 481),
  (bench: CoreBench, call: Call) => bench.fromPeer(call.request, 'INVITE', 3),
  (bench: CoreBench, call: Call) => bench.fromPeer(call.request, 'CANCEL', 3),
  (bench: CoreBench, call: Call) => bench.fromPeer(call.request, 'ACK', 3),
  (bench: CoreBench, call: Call) => bench.fromPeer(call.request, 'INVITE', 4),
  (bench: CoreBench, call: Call) => bench.fromPeer(call.request, 'UPDATE', 5),
  (bench: CoreBench, call: Call) => bench.fromPeer(call.request, 'BYE', 6),
  (bench: CoreBench, call: Call) => bench.inDialog(call.dialogId, 'ACK'),
  (bench: CoreBench, call: Call) => bench.inDialog(call.dialogId, 'BYE'),
  (bench: CoreBench, call: Call) => bench.inDialog(call.dialogId, 'INVITE'),
  (bench: CoreBench, call: Call) =>
    bench.execute({ type: 'cancel', transactionId: call.transactionId, message: call.request }),
  (bench: CoreBench) => bench.respond(bench.delivered.at(-1)?.transactionId ?? '', 200),
  (bench: CoreBench) => bench.respond(bench.delivered.at(-1)?.transactionId ?? '', 180),
  (bench: CoreBench) => bench.respond(bench.delivered.at(-1)?.transactionId ?? '', 488),
  (bench: CoreBench) => bench.fromStranger('INVITE', 'stranger'),
  (bench: CoreBench) => bench.fromStranger('CANCEL', 'stranger'),
  (bench: CoreBench) =>
    bench.core.onUnreachable({ transport: 'udp', host: '192.0.2.7', port: 5060, connectionId: null }),
  (bench: CoreBench) => bench.clock.advance(700),
  (bench: CoreBench) => bench.clock.advance(33_000),
];
type Call = ReturnType<CoreBench['invite']>;

it('any sequence of call events leaves nothing behind once the application is gone', () => {
  const steps = fc.array(fc.nat(STEPS.length - 1), { maxLength: 25 });
  fc.assert(
    fc.property(steps, (indexes) => {
      const bench = new CoreBench();
      const call = bench.invite();
      for (const index of indexes) STEPS[index]?.(bench, call);
      bench.isOpen = false;
      bench.core.abandon(bench.application);
      bench.clock.advance(300_000);
      expect(bench.counts).toEqual({
        transactions: { outgoing: 0, incoming: 0 },
        dialogs: 0,
        invitesSent: 0,
        requestsUnanswered: 0,
      });
      expect(bench.clock.pendingCount).toBe(0);
    }),
    { numRuns: 1500 },
  );
});
