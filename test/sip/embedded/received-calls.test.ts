import { afterEach, describe, expect, it } from 'vitest';
import type { EmbeddedSipServer } from '../../../sip/embedded/embedded-sip-server.ts';
import { appendHeader, header, headers, parseVia, setHeader, tagOf } from '../../../sip/message/index.ts';
import {
  branchOf,
  Harness,
  type TestDialog,
  type TestRequest,
  type TestResponse,
  type TestSrf,
  untilCounts,
  untilRouted,
} from './server-harness.ts';
import { SDP, type SipPeer } from './sip-peer.ts';

const harness = new Harness();
afterEach(() => harness.closeAll());

describe('incoming call', () => {
  it('connects with createUAS and ends with a BYE of the peer', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const dialogs = answerAll(srf);
    await untilRouted(server, 'invite');
    const invite = peer.make('INVITE', { callId: 'in-1', body: SDP, port: server.sipPort });
    appendHeader(invite, 'Record-Route', '<sip:proxy.invalid;lr>');
    peer.send(invite, server.sipPort);
    await peer.response(100);
    const ringing = await peer.response(180);
    const answer = await peer.response(200);
    expect(tagOf(header(answer, 'to'))).toBe(tagOf(header(ringing, 'to')));
    expect(headers(answer, 'record-route')).toEqual(['<sip:proxy.invalid;lr>']);
    expect(header(answer, 'contact')).toBe(`<sip:127.0.0.1:${server.sipPort}>`);
    expect(header(answer, 'content-type')).toBe('application/sdp');
    expect(answer.body.toString()).toBe(SDP);
    const dialog = await dialogs.next();
    expect(dialog.id).toBe('in-1;from-tag=from-in-1');
    const acknowledged = new Promise<void>((resolve) => dialog.on('ack', () => resolve()));
    peer.send(peer.within(invite, answer, 'ACK', 1), server.sipPort);
    await acknowledged;
    const destroyed = new Promise<void>((resolve) => dialog.on('destroy', () => resolve()));
    peer.send(peer.within(invite, answer, 'BYE', 2), server.sipPort);
    await destroyed;
    expect(header(await peer.response(200), 'cseq')).toBe('2 BYE');
    await untilCounts(server, (core) => core.dialogs === 0 && core.requestsUnanswered === 0);
  });

  it('ends with a BYE along the recorded route', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const dialogs = answerAll(srf);
    await untilRouted(server, 'invite');
    const invite = peer.make('INVITE', { callId: 'in-2', body: SDP, port: server.sipPort });
    appendHeader(invite, 'Record-Route', `<sip:127.0.0.1:${peer.port};lr>, <sip:second.invalid;lr>`);
    setHeader(invite, 'Contact', '<sip:caller@behind.invalid>');
    peer.send(invite, server.sipPort);
    const answer = await peer.response(200);
    const dialog = await dialogs.next();
    peer.send(peer.within(invite, answer, 'ACK', 1), server.sipPort);
    const ending = dialog.destroy();
    const bye = await peer.request('BYE');
    expect(bye.uri).toBe('sip:caller@behind.invalid');
    expect(headers(bye, 'route')).toEqual([`<sip:127.0.0.1:${peer.port};lr>`, '<sip:second.invalid;lr>']);
    expect(header(bye, 'from')).toBe(header(answer, 'to'));
    expect(header(bye, 'to')).toBe(header(invite, 'from'));
    peer.reply(bye, 200, { contact: null });
    await ending;
  });

  it('arrives once despite repeated INVITEs', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const seen: TestRequest[] = [];
    const { promise: asked, resolve } = Promise.withResolvers<TestResponse>();
    srf.invite((request, response) => {
      seen.push(request);
      resolve(response);
    });
    await untilRouted(server, 'invite');
    const invite = peer.make('INVITE', { callId: 'in-3', body: SDP, port: server.sipPort });
    for (let sent = 0; sent < 3; sent++) peer.send(invite, server.sipPort);
    for (let received = 0; received < 3; received++) await peer.response(100);
    (await asked).send(486);
    const busy = await peer.response(486);
    peer.send(peer.within(invite, appendContact(busy, peer), 'ACK', 1), server.sipPort);
    expect(seen).toHaveLength(1);
  });

  it('repeats its rejection until the ACK with the branch of the INVITE', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    srf.invite((_request, response) => response.send(603));
    await untilRouted(server, 'invite');
    const invite = peer.make('INVITE', { callId: 'in-4', body: SDP, port: server.sipPort });
    peer.send(invite, server.sipPort);
    const first = await peer.response(603);
    expect(header(await peer.response(603), 'to')).toBe(header(first, 'to'));
    const ack = peer.within(invite, appendContact(first, peer), 'ACK', 1);
    setHeader(ack, 'Via', header(invite, 'via') ?? '');
    peer.send(ack, server.sipPort);
    await untilCounts(server, ({ transactions }) => transactions.incoming === 0);
  });

  it('ends with BYE and destroy if its answer is never acknowledged', async () => {
    const { srf, server } = await harness.start({ timers: { t1Ms: 5 } });
    const peer = await harness.peer();
    const dialogs = answerAll(srf);
    await untilRouted(server, 'invite');
    peer.send(peer.make('INVITE', { callId: 'in-5', body: SDP, port: server.sipPort }), server.sipPort);
    await peer.response(200);
    await peer.response(200);
    const dialog = await dialogs.next();
    const reason = new Promise<string>((resolve) => dialog.once('destroy', (_bye, why) => resolve(why)));
    peer.reply(await peer.request('BYE'), 200, { contact: null });
    expect(await reason).toBe('ACK timeout');
  });

  it('ends when the caller cancels', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const { promise: cancelled, resolve } = Promise.withResolvers<void>();
    srf.invite((request, response) => {
      request.on('cancel', () => resolve());
      response.send(180);
    });
    await untilRouted(server, 'invite');
    const invite = peer.make('INVITE', { callId: 'in-6', body: SDP, port: server.sipPort });
    peer.send(invite, server.sipPort);
    const ringing = await peer.response(180);
    const cancel = peer.make('CANCEL', { callId: 'in-6', port: server.sipPort, branch: branchOf(invite) ?? '' });
    peer.send(cancel, server.sipPort);
    expect(header(await peer.response(200), 'cseq')).toBe('1 CANCEL');
    expect(header(await peer.response(487), 'to')).toBe(header(ringing, 'to'));
    await cancelled;
    await untilCounts(server, (core) => core.dialogs === 0 && core.requestsUnanswered === 0);
  });

  it('accepts a re-INVITE of the caller', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const { dialog, invite, answer } = await receive(srf, peer, server, 'in-7');
    dialog.on('modify', (_request, response) => (response as TestResponse).send(200, { body: SDP }));
    const reinvite = peer.within(invite, answer, 'INVITE', 2);
    reinvite.body = Buffer.from(SDP.replace('40000', '50000'));
    appendHeader(reinvite, 'Content-Type', 'application/sdp');
    peer.send(reinvite, server.sipPort);
    expect(header(await peer.response(200), 'cseq')).toBe('2 INVITE');
    const acknowledged = new Promise<void>((resolve) => dialog.on('ack', () => resolve()));
    peer.send(peer.within(invite, answer, 'ACK', 2), server.sipPort);
    await acknowledged;
    expect(dialog.remote.sdp).toContain('50000');
  });

  it('accepts INFO and OPTIONS, and rejects a decreasing CSeq', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const { dialog, invite, answer } = await receive(srf, peer, server, 'in-8');
    const info = new Promise<string>((resolve) =>
      dialog.on('info', (request, response) => {
        (response as TestResponse).send(200);
        resolve(request.body);
      }),
    );
    const request = peer.within(invite, answer, 'INFO', 5);
    request.body = Buffer.from('Signal=5');
    appendHeader(request, 'Content-Type', 'application/dtmf-relay');
    peer.send(request, server.sipPort);
    expect(await info).toBe('Signal=5');
    expect(header(await peer.response(200), 'cseq')).toBe('5 INFO');
    peer.send(peer.within(invite, answer, 'OPTIONS', 6), server.sipPort);
    await peer.response(200);
    peer.send(peer.within(invite, answer, 'INFO', 4), server.sipPort);
    await peer.response(500);
  });

  it('works over TCP, with responses on the connection of the request', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer('tcp');
    const { dialog } = await receive(srf, peer, server, 'in-9');
    const ending = dialog.destroy();
    peer.reply(await peer.request('BYE'), 200, { contact: null });
    await ending;
  });
});

describe('call to itself', () => {
  it('creates two distinguishable dialogs', async () => {
    const { srf, server } = await harness.start();
    const dialogs = answerAll(srf);
    await untilRouted(server, 'invite');
    const placed = await srf.createUAC(`sip:self@127.0.0.1:${server.sipPort}`, { localSdp: SDP });
    const received = await dialogs.next();
    expect(received.id).not.toBe(placed.id);
    expect(received.sip.callId).toBe(placed.sip.callId);
    const info = new Promise<void>((resolve) =>
      placed.on('info', (_request, response) => {
        (response as TestResponse).send(200);
        resolve();
      }),
    );
    expect((await received.request({ method: 'INFO' })).status).toBe(200);
    await info;
    const destroyed = new Promise<void>((resolve) => received.on('destroy', () => resolve()));
    await placed.destroy();
    await destroyed;
    await untilCounts(server, (core) => core.dialogs === 0);
  });
});

describe('unhandled request', () => {
  it('gets 503 without an application, including OPTIONS', async () => {
    const { server } = await harness.start();
    const peer = await harness.peer();
    for (const method of ['INVITE', 'OPTIONS', 'MESSAGE']) {
      peer.send(peer.make(method, { callId: `none-${method}`, port: server.sipPort }), server.sipPort);
      expect(header(await peer.response(503), 'cseq')).toBe(`1 ${method}`);
    }
  });

  it('reaches the application that registered its method', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    srf.options((_request, response) => response.send(200, { headers: { Allow: 'INVITE' } }));
    await untilRouted(server, 'options');
    peer.send(peer.make('OPTIONS', { callId: 'opt', port: server.sipPort }), server.sipPort);
    expect(header(await peer.response(200), 'allow')).toBe('INVITE');
  });

  it('gets 481 in an unknown dialog, while an ACK gets no response', async () => {
    const { server } = await harness.start();
    const peer = await harness.peer();
    for (const method of ['ACK', 'BYE', 'INFO', 'INVITE', 'CANCEL']) {
      const request = peer.make(method, { callId: `lost-${method}`, port: server.sipPort });
      setHeader(request, 'To', '<sip:tandem@127.0.0.1>;tag=gone');
      peer.send(request, server.sipPort);
    }
    for (const method of ['BYE', 'INFO', 'INVITE', 'CANCEL']) {
      expect(header(await peer.response(481), 'cseq')).toBe(`1 ${method}`);
    }
    expect(peer.inbox.map((message) => header(message, 'cseq'))).not.toContain('1 ACK');
  });

  it('gets 482 if it arrived twice on different paths', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    srf.invite(() => {});
    await untilRouted(server, 'invite');
    const invite = peer.make('INVITE', { callId: 'merged', port: server.sipPort, branch: 'z9hG4bK-a' });
    peer.send(invite, server.sipPort);
    setHeader(invite, 'Via', peer.via('z9hG4bK-b'));
    peer.send(invite, server.sipPort);
    await peer.response(482);
  });

  it('gets its response at its source address and port', async () => {
    const { server } = await harness.start();
    const peer = await harness.peer();
    const request = peer.make('OPTIONS', { callId: 'rport', port: server.sipPort });
    setHeader(request, 'Via', 'SIP/2.0/UDP natted.invalid:9;branch=z9hG4bK-rport;rport');
    peer.send(request, server.sipPort);
    const via = parseVia(header(await peer.response(503), 'via') ?? '');
    expect(via).toMatchObject({ host: 'natted.invalid', port: 9 });
    expect(via.params.get('received')).toBe('127.0.0.1');
    expect(via.params.get('rport')).toBe(String(peer.port));
  });

  it('gets the branch that it had, whatever its characters', async () => {
    const { server } = await harness.start();
    const peer = await harness.peer();
    const request = peer.make('OPTIONS', { callId: 'base64', port: server.sipPort });
    setHeader(request, 'Via', 'SIP/2.0/UDP 127.0.0.1:9;rport;branch=z9hG4bK/a+b==');
    peer.send(request, server.sipPort);
    expect(header(await peer.response(503), 'via')).toContain(';branch=z9hG4bK/a+b==');
  });
});

function answerAll(srf: TestSrf): { next(): Promise<TestDialog> } {
  const { promise, resolve, reject } = Promise.withResolvers<TestDialog>();
  srf.invite((request, response) => {
    response.send(180);
    srf.createUAS(request, response, { localSdp: SDP }).then(resolve, reject);
  });
  return { next: () => promise };
}

async function receive(srf: TestSrf, peer: SipPeer, server: EmbeddedSipServer, callId: string) {
  const port = server.sipPort;
  const dialogs = answerAll(srf);
  await untilRouted(server, 'invite');
  const invite = peer.make('INVITE', { callId, body: SDP, port });
  peer.send(invite, port);
  const answer = await peer.response(200);
  const dialog = await dialogs.next();
  const acknowledged = new Promise<void>((resolve) => dialog.once('ack', () => resolve()));
  peer.send(peer.within(invite, answer, 'ACK', 1), port);
  await acknowledged;
  return { dialog, invite, answer };
}

/** Rejections have no Contact, from which `within` takes the target. */
function appendContact<T extends Parameters<typeof appendHeader>[0]>(response: T, peer: SipPeer): T {
  appendHeader(response, 'Contact', `<${peer.uri}>`);
  return response;
}
