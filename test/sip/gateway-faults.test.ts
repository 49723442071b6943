import { afterEach, describe, expect, test } from 'vitest';
import {
  createDrachtioGateway,
  type DrachtioGateway,
  type DrachtioGatewayOptions,
} from '../../sip/sip-gateway.drachtio.ts';
import { dialLeg, trunkOf } from './dialing.ts';
import { type ScriptedMessage, ScriptedServer, type ScriptedServerOptions } from './scripted-server.ts';

const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function scripted(options: ScriptedServerOptions = {}, port = 0): Promise<ScriptedServer> {
  const server = await ScriptedServer.start(options, port);
  cleanUps.push(() => server.stop());
  return server;
}

async function gatewayTo(port: number, options: Partial<DrachtioGatewayOptions> = {}): Promise<DrachtioGateway> {
  const gateway = await createDrachtioGateway({ host: '127.0.0.1', port, secret: 's', ...options });
  cleanUps.push(() => gateway.close());
  return gateway;
}

function untilState(gateway: DrachtioGateway, wanted: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (gateway.state === wanted) resolve();
  gateway.onStateChange((state) => {
    if (state === wanted) resolve();
  });
  return promise;
}

const TRUNK = trunkOf('sip:127.0.0.1:9');
const DIALOG_HEADERS = [
  'From: <sip:+918000000001@127.0.0.1>;tag=ours',
  'To: <sip:+919876543210@127.0.0.1>;tag=theirs',
  'Call-ID: one',
].join('\r\n');

/** Confirms a sent request, as a server does: the message with Call-ID, From tag and CSeq. */
function confirm(message: ScriptedMessage, transactionId: string): void {
  const method = message.sip.slice(0, message.sip.indexOf(' '));
  const startLine = message.sip.slice(0, message.sip.indexOf('\r\n'));
  const echo = `${startLine}\r\n${DIALOG_HEADERS}\r\nCSeq: 1 ${method}\r\nContent-Length: 0\r\n\r\n`;
  const leader = `x|response|${message.id}|OK|application|1|udp|127.0.0.1|5060|10:00:00.000000|${transactionId}|Msg sent:|`;
  message.send(`${leader}\r\n${echo}`);
}

const DIALOG = 'one;from-tag=ours';

interface PeerMessage {
  transactionId: string;
  dialogId?: string;
  startLine: string;
  sequence: string;
  body?: string;
}

/** A message of the peer in the dialog. */
function deliver(
  message: ScriptedMessage,
  { transactionId, dialogId = DIALOG, startLine, sequence, body = '' }: PeerMessage,
): void {
  const leader = `x|sip|network|1|udp|127.0.0.1|5060|10:00:00.000000|${transactionId}|${dialogId}|`;
  const type = body === '' ? '' : 'Content-Type: application/sdp\r\n';
  message.send(
    `${leader}\r\n${startLine}\r\n${DIALOG_HEADERS}\r\nCSeq: ${sequence}\r\n${type}Content-Length: ${body.length}\r\n\r\n${body}`,
  );
}

function respond(
  message: ScriptedMessage,
  transactionId: string,
  statusLine: string,
  { body, dialogId }: { body?: string; dialogId?: string } = {},
): void {
  deliver(message, { transactionId, dialogId, startLine: `SIP/2.0 ${statusLine}`, sequence: '1 INVITE', body });
}

function request(
  message: ScriptedMessage,
  transactionId: string,
  method: string,
  { number = 1, body }: { number?: number; body?: string } = {},
): void {
  deliver(message, { transactionId, startLine: `${method} sip:a@b SIP/2.0`, sequence: `${number} ${method}`, body });
}

function methodOf(message: ScriptedMessage): string {
  return message.sip.split(' ')[0] ?? '';
}

const CHALLENGE = '407 Proxy Authentication Required\r\nProxy-Authenticate: Digest realm="r", nonce="n", qop="auth"';
const ANSWER = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 0\r\n';

describe('connecting to the server', () => {
  test('fails with a rejected secret, without a retry', async () => {
    const server = await scripted({ authentication: 'refuse' });
    await expect(gatewayTo(server.port)).rejects.toMatchObject({ code: 'server.secret_refused' });
    await expect(gatewayTo(server.port)).rejects.toMatchObject({ code: 'server.secret_refused' });
    expect(server.connections).toBe(2);
  });

  test('times out if the server is silent', async () => {
    const server = await scripted({ authentication: 'ignore' });
    await expect(gatewayTo(server.port, { connectTimeoutMs: 50 })).rejects.toMatchObject({
      code: 'server.unreachable',
    });
  });

  test('fails at once if the port is closed', async () => {
    const server = await scripted();
    const { port } = server;
    await server.stop();
    await expect(gatewayTo(port)).rejects.toMatchObject({ code: 'server.unreachable' });
  });
});

describe('connecting in the background', () => {
  test('starts disconnected, rejects calls, and connects once the server starts', async () => {
    const first = await scripted();
    const { port } = first;
    await first.stop();
    const gateway = await gatewayTo(port, { connectInBackground: true });
    expect(gateway.state).toBe('disconnected');
    expect(gateway.dump()).toMatchObject({ connectFailure: 'server.unreachable', server: null });
    expect(await dialLeg(gateway, { trunk: TRUNK }).over()).toMatchObject({ type: 'leg.refused', sipStatus: 503 });
    await scripted({}, port);
    await untilState(gateway, 'connected');
    expect(gateway.dump()).toMatchObject({ connectFailure: null });
  });

  test('fails at once if the server rejects the secret', async () => {
    const server = await scripted({ authentication: 'refuse' });
    await expect(gatewayTo(server.port, { connectInBackground: true })).rejects.toMatchObject({
      code: 'server.secret_refused',
    });
  });

  test('reports in its state that the server rejected the secret', async () => {
    const first = await scripted();
    const { port } = first;
    await first.stop();
    const refused = Promise.withResolvers<void>();
    const logger = { info() {}, warn() {}, error: () => refused.resolve() };
    const gateway = await gatewayTo(port, { connectInBackground: true, logger });
    await scripted({ authentication: 'refuse' }, port);
    await refused.promise;
    expect(gateway.dump()).toMatchObject({ state: 'disconnected', connectFailure: 'server.secret_refused' });
  });

  test('ends when the gateway closes', async () => {
    const first = await scripted();
    const { port } = first;
    await first.stop();
    const gateway = await gatewayTo(port, { connectInBackground: true });
    await gateway.close();
    expect(gateway.state).toBe('disconnected');
  });
});

describe('lost connection', () => {
  test('ends every leg with leg.lost, rejects new ones and reconnects', async () => {
    const server = await scripted({ onMessage: (message) => confirm(message, 't1') });
    const gateway = await gatewayTo(server.port);
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    const lost = untilState(gateway, 'disconnected');
    server.dropClients();
    await lost;
    expect(await dialed.over()).toMatchObject({ type: 'leg.lost' });
    const meanwhile = dialLeg(gateway, { trunk: TRUNK });
    expect(meanwhile.log.all).toEqual([]);
    expect(await meanwhile.over()).toMatchObject({ type: 'leg.refused', sipStatus: 503 });
    await untilState(gateway, 'connected');
    expect(server.connections).toBe(2);
    expect(dialed.log.all).toHaveLength(1);
  });

  test('leaves legs on a server that continues, which end after the reconnect', async () => {
    const ended = Promise.withResolvers<ScriptedMessage[]>();
    const endings: ScriptedMessage[] = [];
    const server = await scripted({
      onMessage: (message) => {
        const method = methodOf(message);
        const isAnswered = message.sip.includes('sip:+919876543210');
        if (method === 'INVITE') {
          confirm(message, isAnswered ? 't1' : 't2');
          if (isAnswered) respond(message, 't1', '200 OK', { body: ANSWER });
        }
        if (method !== 'CANCEL' && method !== 'BYE') return;
        endings.push(message);
        if (endings.length === 2) ended.resolve(endings);
      },
    });
    const gateway = await gatewayTo(server.port, { outlivesUs: true });
    const answered = dialLeg(gateway, { trunk: TRUNK });
    await answered.log.until('leg.answered');
    const ringing = dialLeg(gateway, { trunk: TRUNK, calledNumber: '+919876543211' });
    await server.until((message) => message.sip.includes('+919876543211'));
    server.dropClients();
    await Promise.all([answered.over(), ringing.over()]);
    const sent = (await ended.promise).map((message) => [methodOf(message), message.words.join('|')]);
    expect(sent.toSorted()).toEqual([
      ['BYE', `sip||${DIALOG}`],
      ['CANCEL', 'sip|t2|'],
    ]);
  });

  test('leaves an INVITE answered meanwhile, which ends by its dialog', async () => {
    const ended = Promise.withResolvers<ScriptedMessage>();
    const server = await scripted({
      onMessage: (message) => {
        if (methodOf(message) === 'CANCEL') message.send(`x|response|${message.id}|NOK|it has been answered`);
        if (methodOf(message) === 'BYE') ended.resolve(message);
      },
    });
    const gateway = await gatewayTo(server.port);
    gateway.endLegs([{ kind: 'invite', transactionId: 't1', dialogId: DIALOG }]);
    expect((await ended.promise).words.join('|')).toBe(`sip||${DIALOG}`);
    expect(server.received.map(methodOf)).toContain('CANCEL');
  });

  test('reconnects slowly after a rejected secret', async () => {
    const server = await scripted();
    const refused = Promise.withResolvers<void>();
    const logger = { info() {}, warn() {}, error: () => refused.resolve() };
    const gateway = await gatewayTo(server.port, { logger });
    server.authentication = 'refuse';
    server.dropClients();
    await refused.promise;
    expect(gateway.state).toBe('disconnected');
    expect(server.connections).toBe(2);
  });

  test('reconnects when the server accepts the secret again', async () => {
    const server = await scripted();
    const refused = Promise.withResolvers<void>();
    const logger = { info() {}, warn() {}, error: () => refused.resolve() };
    const gateway = await gatewayTo(server.port, { logger, refusedRetryMs: 10 });
    server.authentication = 'refuse';
    server.dropClients();
    await refused.promise;
    server.authentication = 'accept';
    await untilState(gateway, 'connected');
  });

  test('triggers when the server hangs', async () => {
    const server = await scripted();
    const gateway = await gatewayTo(server.port, { pingIntervalMs: 20 });
    await untilState(gateway, 'disconnected');
    expect(server.received.some(({ words }) => words[0] === 'ping')).toBe(true);
  });

  test('triggers on invalid bytes, without ending the process', async () => {
    const server = await scripted();
    const gateway = await gatewayTo(server.port);
    const lost = untilState(gateway, 'disconnected');
    server.sendRaw('HTTP/1.1 400 Bad Request #1\r\n\r\n');
    await lost;
    await untilState(gateway, 'connected');
  });
});

describe('message that makes drachtio-srf throw', () => {
  test('affects nothing else', async () => {
    const { promise: pinged, resolve } = Promise.withResolvers<void>();
    const server = await scripted({ onMessage: () => resolve() });
    const fault = Promise.withResolvers<unknown>();
    const logger = { info() {}, warn() {}, error: (fields: object) => fault.resolve(fields) };
    const gateway = await gatewayTo(server.port, { logger });
    server.send('x|surprise|1');
    await fault.promise;
    dialLeg(gateway, { trunk: TRUNK });
    await pinged;
    expect(gateway.state).toBe('connected');
  });
});

describe('forgetful server', () => {
  test('loses the leg if it never confirms the INVITE', async () => {
    const server = await scripted();
    const gateway = await gatewayTo(server.port, { sendTimeoutMs: 30 });
    expect(await dialLeg(gateway, { trunk: TRUNK }).over()).toMatchObject({ type: 'leg.lost' });
  });

  test('receives CANCEL if it confirms the INVITE too late', async () => {
    const cancelled = Promise.withResolvers<void>();
    const invited = Promise.withResolvers<ScriptedMessage>();
    const server = await scripted({
      onMessage: (message) => {
        if (methodOf(message) === 'INVITE') invited.resolve(message);
        if (methodOf(message) === 'CANCEL') cancelled.resolve();
      },
    });
    const gateway = await gatewayTo(server.port, { sendTimeoutMs: 30 });
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    await dialed.over();
    confirm(await invited.promise, 't1');
    await cancelled.promise;
    expect(dialed.log.all).toHaveLength(1);
  });

  test('receives CANCEL, then BYE if answered, for an INVITE it sends after a freeze', async () => {
    const cancelled = Promise.withResolvers<ScriptedMessage>();
    const ended = Promise.withResolvers<ScriptedMessage>();
    let invite: ScriptedMessage | null = null;
    const server = await scripted({
      onMessage: (message) => {
        if (methodOf(message) === 'INVITE') invite = message;
        if (methodOf(message) === 'CANCEL') cancelled.resolve(message);
        if (methodOf(message) === 'BYE') ended.resolve(message);
      },
    });
    const gateway = await gatewayTo(server.port, { pingIntervalMs: 20, outlivesUs: true });
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    await untilState(gateway, 'disconnected');
    expect(await dialed.over()).toMatchObject({ type: 'leg.lost' });
    confirm(invite!, 't1');
    expect((await cancelled.promise).words.join('|')).toBe('sip|t1|');
    respond(invite!, 't1', '200 OK', { body: ANSWER });
    expect((await ended.promise).words.join('|')).toBe(`sip||${DIALOG}`);
    expect(dialed.log.all).toHaveLength(1);
  });

  test('receives CANCEL when the owner abandons an unanswered leg, which ends it', async () => {
    const cancelled = Promise.withResolvers<void>();
    const server = await scripted({
      onMessage: (message) => {
        confirm(message, 't1');
        if (methodOf(message) === 'CANCEL') cancelled.resolve();
      },
    });
    const gateway = await gatewayTo(server.port);
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    dialed.controller.abort();
    expect(await dialed.over()).toMatchObject({ sipStatus: 487, hangupCause: 'ORIGINATOR_CANCEL' });
    await cancelled.promise;
    expect(dialed.log.all).toHaveLength(1);
    expect(gateway.dump()).toMatchObject({ legs: [] });
  });

  test('receives CANCEL when the owner abandons a ringing leg, which ends it', async () => {
    const cancelled = Promise.withResolvers<void>();
    const server = await scripted({
      onMessage: (message) => {
        confirm(message, 't1');
        if (methodOf(message) === 'INVITE') respond(message, 't1', '180 Ringing');
        if (methodOf(message) === 'CANCEL') cancelled.resolve();
      },
    });
    const gateway = await gatewayTo(server.port);
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    await dialed.log.until('leg.ringing');
    dialed.controller.abort();
    await cancelled.promise;
    expect(await dialed.over()).toMatchObject({ sipStatus: 487, hangupCause: 'ORIGINATOR_CANCEL' });
  });

  test('does not answer CANCEL, and the leg ends when its owner abandons it', async () => {
    const cancelled = Promise.withResolvers<void>();
    const server = await scripted({
      onMessage: (message) => {
        confirm(message, 't1');
        if (methodOf(message) === 'CANCEL') cancelled.resolve();
      },
    });
    const gateway = await gatewayTo(server.port);
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    dialed.leg.hangup('NO_ANSWER');
    dialed.leg.hangup('NO_ANSWER');
    await cancelled.promise;
    expect(dialed.log.all).toEqual([]);
    dialed.controller.abort();
    expect(await dialed.over()).toMatchObject({ sipStatus: 487, hangupCause: 'ORIGINATOR_CANCEL' });
    expect(server.received.filter((message) => methodOf(message) === 'CANCEL')).toHaveLength(1);
  });

  test('does not answer BYE, and the leg ends when its owner abandons it', async () => {
    const bye = Promise.withResolvers<void>();
    const server = await scripted({
      onMessage: (message) => {
        confirm(message, methodOf(message));
        if (methodOf(message) === 'INVITE') respond(message, 'INVITE', '200 OK', { body: ANSWER });
        if (methodOf(message) === 'BYE') bye.resolve();
      },
    });
    const gateway = await gatewayTo(server.port);
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    await dialed.log.until('leg.answered');
    dialed.leg.hangup('MAX_DURATION');
    await bye.promise;
    dialed.controller.abort();
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'MAX_DURATION' });
    expect(server.received.filter((message) => methodOf(message) === 'BYE')).toHaveLength(1);
  });
});

test('a late answer after an abandoned leg is acknowledged and ended without an event', async () => {
  const bye = Promise.withResolvers<ScriptedMessage>();
  const cancelled = Promise.withResolvers<void>();
  let invite: ScriptedMessage | null = null;
  const server = await scripted({
    onMessage: (message) => {
      if (methodOf(message) === 'INVITE') invite = message;
      if (methodOf(message) === 'BYE') bye.resolve(message);
      confirm(message, methodOf(message));
      if (methodOf(message) === 'CANCEL') cancelled.resolve();
    },
  });
  const gateway = await gatewayTo(server.port);
  const dialed = dialLeg(gateway, { trunk: TRUNK });
  dialed.leg.hangup('NORMAL_CLEARING');
  await cancelled.promise;
  dialed.controller.abort();
  await dialed.over();
  respond(invite!, 'INVITE', '200 OK', { body: ANSWER });
  const { words } = await bye.promise;
  expect(words[2]).toBe('one;from-tag=ours');
  expect(server.received.map(methodOf).filter((method) => method !== '')).toEqual(['INVITE', 'CANCEL', 'ACK', 'BYE']);
  expect(dialed.log.all).toHaveLength(1);
});

test('a request that the server fails to send ends the leg with 503', async () => {
  const server = await scripted({ onMessage: ({ id, send }) => send(`x|response|${id}|NOK|no such transport`) });
  const gateway = await gatewayTo(server.port);
  expect(await dialLeg(gateway, { trunk: TRUNK }).over()).toMatchObject({
    type: 'leg.refused',
    sipStatus: 503,
    detail: 'no such transport',
  });
});

test.each([
  ['an invalid called number', { calledNumber: '+91 98' }, 484, 'INVALID_NUMBER_FORMAT'],
  ['a caller id with a line end', { callerId: '+91\r\nX-Evil: 1' }, 484, 'INVALID_NUMBER_FORMAT'],
  ['a trunk without an address', { trunk: trunkOf('carrier') }, 503, 'NORMAL_TEMPORARY_FAILURE'],
] as const)('%s fails the leg before anything is sent', async (_what, request, sipStatus, hangupCause) => {
  const server = await scripted();
  const gateway = await gatewayTo(server.port);
  const dialed = dialLeg(gateway, { trunk: TRUNK, ...request });
  expect(dialed.log.all).toEqual([]);
  expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus, hangupCause });
  expect(server.received.some(({ words }) => words[0] === 'sip')).toBe(false);
});

test('an aborted signal prevents dialing', async () => {
  const server = await scripted();
  const gateway = await gatewayTo(server.port);
  const dialed = dialLeg(gateway, { trunk: TRUNK, signal: AbortSignal.abort() });
  expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 487 });
  expect(server.received.some(({ words }) => words[0] === 'sip')).toBe(false);
});

test('a trunk probe times out by itself if the server is silent', async () => {
  const server = await scripted();
  const gateway = await gatewayTo(server.port, { probeTimeoutMs: 20 });
  expect(await gateway.probe(TRUNK, new AbortController().signal)).toMatchObject({ reachable: false, sipStatus: null });
  expect(await gateway.probe(trunkOf('nonsense'), new AbortController().signal)).toMatchObject({ reachable: false });
});

test('a status generated by the server does not make a trunk reachable', async () => {
  const server = await scripted({
    onMessage: (message) => {
      confirm(message, 't1');
      message.send(
        `x|sip|network|0|udp||0|10:00:00.000000|t1||\r\nSIP/2.0 408 Request Timeout\r\n${DIALOG_HEADERS}\r\n\r\n`,
      );
    },
  });
  const gateway = await gatewayTo(server.port);
  expect(await gateway.probe(TRUNK, new AbortController().signal)).toMatchObject({ reachable: false, sipStatus: 408 });
});

describe('dialog', () => {
  async function answered(dialogId = DIALOG) {
    const bye = Promise.withResolvers<ScriptedMessage>();
    let invite: ScriptedMessage | null = null;
    const server = await scripted({
      onMessage: (message) => {
        if (message.words[1] === '' && methodOf(message) === 'INVITE') invite = message;
        if (methodOf(message) === 'BYE') bye.resolve(message);
        confirm(message, methodOf(message));
        if (methodOf(message) === 'INVITE') respond(message, 'INVITE', '200 OK', { body: ANSWER, dialogId });
      },
    });
    const gateway = await gatewayTo(server.port);
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    await dialed.log.until('leg.answered');
    const request = (source: 'network' | 'application', transactionId: string, method: string) =>
      invite!.send(
        `x|sip|${source}|1|udp|127.0.0.1|5060|10:00:00.000000|${transactionId}|${DIALOG}|\r\n${method} sip:a@b SIP/2.0\r\n${DIALOG_HEADERS}\r\nCSeq: 2 ${method}\r\nContent-Length: 0\r\n\r\n`,
      );
    return { server, dialed, request, bye: bye.promise };
  }

  test('refreshes the session with an offer after a challenge to the refresh of the server', async () => {
    const { server, request } = await answered();
    request('application', 'unsolicited', 'UPDATE');
    await server.until((message) => methodOf(message) === 'INVITE' && message.words[2] === DIALOG);
  });

  test('ends when the server itself sends BYE, but not as ended by the peer', async () => {
    const { dialed, request } = await answered();
    request('application', 'unsolicited', 'BYE');
    expect(await dialed.over()).toEqual({
      type: 'leg.ended',
      by: 'local',
      hangupCause: 'RECOVERY_ON_TIMER_EXPIRE',
    });
  });

  test.each([
    { what: 'refreshes the session', body: '', status: '200 OK' },
    { what: 'offers', body: ANSWER, status: '491 Request Pending' },
  ])('answers an UPDATE that $what during our re-INVITE', async ({ body, status }) => {
    const server = await scripted({
      onMessage: (message) => {
        if (methodOf(message) === 'ACK' || methodOf(message) === 'SIP/2.0') return;
        const isFirst = message.words[2] === '';
        confirm(message, isFirst ? 't1' : 't2');
        if (isFirst) respond(message, 't1', '200 OK', { body: ANSWER });
        else request(message, 't3', 'UPDATE', { number: 2, body });
      },
    });
    const gateway = await gatewayTo(server.port);
    const dialed = dialLeg(gateway, { trunk: TRUNK });
    await dialed.log.until('leg.answered');
    dialed.leg.hold(true);
    await server.until(({ sip }) => sip.startsWith(`SIP/2.0 ${status}`));
  });

  test('ends with the right BYE even if the server omitted its id', async () => {
    const { dialed, bye } = await answered('');
    dialed.leg.hangup('NORMAL_CLEARING');
    expect((await bye).words[2]).toBe(DIALOG);
    dialed.controller.abort();
    await dialed.over();
  });
});

test('a session timer too short for the peer is raised and retried a bounded number of times', async () => {
  const asked: string[] = [];
  const server = await scripted({
    onMessage: (message) => {
      if (methodOf(message) !== 'INVITE') return;
      asked.push(/^session-expires: (.*)$/im.exec(message.sip)?.[1] ?? '');
      const transactionId = `INVITE-${asked.length}`;
      confirm(message, transactionId);
      respond(message, transactionId, `422 Session Interval Too Small\r\nMin-SE: ${3600 * asked.length}`);
    },
  });
  const dialed = dialLeg(await gatewayTo(server.port), { trunk: TRUNK });
  expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 422 });
  expect(asked).toEqual([1800, 3600, 7200, 10_800].map((seconds) => `${seconds};refresher=uas`));
});

test.each([
  { what: 'a request for a longer session timer', refusal: '422 Session Interval Too Small\r\nMin-SE: 3600' },
  { what: 'another challenge with the same nonce', refusal: `${CHALLENGE}, stale=true` },
])('$what is answered with a new count of the nonce', async ({ refusal }) => {
  const counts: (string | undefined)[] = [];
  const server = await scripted({
    onMessage: (message) => {
      if (methodOf(message) !== 'INVITE') return;
      counts.push(/^proxy-authorization: .*\bnc=(\w+)/im.exec(message.sip)?.[1]);
      const transactionId = `INVITE-${counts.length}`;
      confirm(message, transactionId);
      respond(message, transactionId, [CHALLENGE, refusal][counts.length - 1] ?? '486 Busy Here');
    },
  });
  const trunk = { ...TRUNK, username: 'tandem', password: 's3cret' };
  const dialed = dialLeg(await gatewayTo(server.port), { trunk });
  expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 486 });
  expect(counts).toEqual([undefined, '00000001', '00000002']);
});

test('a reliable provisional answer is acknowledged with PRACK', async () => {
  const prack = Promise.withResolvers<ScriptedMessage>();
  const server = await scripted({
    onMessage: (message) => {
      if (methodOf(message) === 'PRACK') prack.resolve(message);
      confirm(message, methodOf(message));
      if (methodOf(message) === 'INVITE') respond(message, 'INVITE', '183 Session Progress\r\nRSeq: 1');
    },
  });
  const gateway = await gatewayTo(server.port);
  const dialed = dialLeg(gateway, { trunk: TRUNK });
  expect((await prack.promise).sip.toLowerCase()).toContain('rack: 1 1 invite');
  dialed.controller.abort();
  await dialed.over();
});

test('early media that the peer moves by UPDATE is reported', async () => {
  const moved = ANSWER.replace('5004', '5008');
  const server = await scripted({
    onMessage: (message) => {
      if (methodOf(message) !== 'INVITE') return;
      confirm(message, 'INVITE');
      respond(message, 'INVITE', '183 Session Progress', { body: ANSWER });
      request(message, 't2', 'UPDATE', { body: moved });
    },
  });
  const dialed = dialLeg(await gatewayTo(server.port), { trunk: TRUNK });
  await dialed.log.until('leg.ringing', ({ earlyMedia }) => earlyMedia?.rtpPort === 5008, 5_000);
  dialed.controller.abort();
  await dialed.over();
});

test('an owner that throws does not affect the gateway', async () => {
  const server = await scripted({ onMessage: ({ id, send }) => send(`x|response|${id}|NOK|no`) });
  const fault = Promise.withResolvers<void>();
  const logger = { info() {}, warn() {}, error: () => fault.resolve() };
  const gateway = await gatewayTo(server.port, { logger });
  const onEvent = () => {
    throw new Error('of the owner');
  };
  dialLeg(gateway, { trunk: TRUNK, onEvent });
  await fault.promise;
  expect(gateway.state).toBe('connected');
  expect(gateway.dump()).toMatchObject({ legs: [], counters: { dialed: 1, faults: 1 } });
});

test('a repeated answer does not end the call', async () => {
  const server = await scripted({
    onMessage: (message) => {
      confirm(message, methodOf(message));
      if (methodOf(message) !== 'INVITE') return;
      respond(message, 'INVITE', '200 OK', { body: ANSWER });
      respond(message, 'INVITE', '200 OK', { body: ANSWER });
      request(message, 't2', 'INFO', { number: 9 });
    },
  });
  const gateway = await gatewayTo(server.port);
  const dialed = dialLeg(gateway, { trunk: TRUNK });
  await dialed.log.until('leg.answered');
  // The response to the next request proves that both answers were processed.
  await server.until(({ sip }) => sip.startsWith('SIP/2.0 200'));
  expect(server.received.map(methodOf)).not.toContain('BYE');
  expect(dialed.log.all).toHaveLength(1);
});

test('the reason phrase of a rejection is reported without control characters, truncated', async () => {
  const server = await scripted({
    onMessage: (message) => {
      confirm(message, 't1');
      if (methodOf(message) === 'INVITE') respond(message, 't1', `486 Busy\u0001here ${'x'.repeat(5000)}`);
    },
  });
  const gateway = await gatewayTo(server.port);
  const last = await dialLeg(gateway, { trunk: TRUNK }).over();
  const detail = last.type === 'leg.refused' ? last.detail : '';
  expect(detail).toMatch(/^Busy here x+$/);
  expect(detail).toHaveLength(200);
});

test.each([40_000, 40_001, 40_010, 40_011])('media at port %i of own legs is rejected', async (rtpPort) => {
  const server = await scripted({
    onMessage: (message) => {
      confirm(message, methodOf(message));
      if (methodOf(message) === 'INVITE' && message.sip.includes('second')) {
        respond(message, 'INVITE', '200 OK', { body: ANSWER.replace('5004', String(rtpPort)) });
      }
    },
  });
  const gateway = await gatewayTo(server.port);
  dialLeg(gateway, { trunk: TRUNK, localMedia: { host: '127.0.0.1', rtpPort: 40_010 } });
  const dialed = dialLeg(gateway, { trunk: TRUNK, callId: 'second' });
  expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 488 });
});

test('endless ringing is reported once, and each change up to a limit', async () => {
  const server = await scripted({
    onMessage: (message) => {
      confirm(message, 't1');
      if (methodOf(message) !== 'INVITE') return;
      for (let count = 0; count < 30; count++) respond(message, 't1', '180 Ringing');
      for (let count = 0; count < 30; count++) {
        respond(message, 't1', '183 Progress', { body: ANSWER.replace('5004', String(5010 + 2 * count)) });
      }
      respond(message, 't1', '486 Busy');
    },
  });
  const gateway = await gatewayTo(server.port);
  const dialed = dialLeg(gateway, { trunk: TRUNK });
  expect(await dialed.over()).toMatchObject({ sipStatus: 486 });
  const ringing = dialed.log.ofType('leg.ringing');
  expect(ringing.filter(({ sipStatus }) => sipStatus === 180)).toHaveLength(1);
  expect(ringing).toHaveLength(20);
});

test('a peer on the same host may use loopback for media, unlike the platform', async () => {
  const server = await scripted({
    onMessage: (message) => {
      confirm(message, methodOf(message));
      if (methodOf(message) === 'INVITE') respond(message, 'INVITE', '200 OK', { body: ANSWER });
    },
  });
  const gateway = await gatewayTo(server.port);
  const dialed = dialLeg(gateway, { trunk: TRUNK, localMedia: { host: '192.0.2.1', rtpPort: 40_000 } });
  expect(await dialed.log.until('leg.answered')).toMatchObject({ media: { host: '127.0.0.1' } });
});
