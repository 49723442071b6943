import { afterEach, describe, expect, it } from 'vitest';
import {
  header,
  headers,
  parseNameAddr,
  type SipRequest,
  serializeMessage,
  tagOf,
} from '../../../sip/message/index.ts';
import {
  branchOf,
  cseqOf,
  Harness,
  type TestDialog,
  type TestRequest,
  type TestSrf,
  untilCounts,
} from './server-harness.ts';
import { SDP, type SipPeer } from './sip-peer.ts';

const harness = new Harness();
afterEach(() => harness.closeAll());

describe('outgoing call', () => {
  it('rings, connects and ends with a local BYE', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const provisional: number[] = [];
    const calling = srf.createUAC(
      peer.uri,
      { localSdp: SDP, headers: { 'X-Tandem-Call-Id': 'c1' }, callingNumber: '+15550100' },
      { cbProvisional: (response) => provisional.push(response.status) },
    );
    const invite = await peer.request('INVITE');
    expect(header(invite, 'max-forwards')).toBe('70');
    expect(header(invite, 'content-type')).toBe('application/sdp');
    expect(invite.headers.map(({ name }) => name)).toContain('X-Tandem-Call-Id');
    expect(invite.body.toString()).toBe(SDP);
    expect(parseNameAddr(header(invite, 'contact') ?? '').uri).toBe(`sip:+15550100@127.0.0.1:${server.sipPort}`);
    expect(parseNameAddr(header(invite, 'from') ?? '').uri).toBe('sip:+15550100@127.0.0.1');
    peer.reply(invite, 100, { contact: null });
    peer.reply(invite, 180);
    peer.reply(invite, 200, { body: SDP });
    const ack = await peer.request('ACK');
    const dialog = await calling;
    expect(provisional).toEqual([180]);
    expect(dialog.remote.sdp).toBe(SDP);
    expect(dialog.id).toBe(`${header(invite, 'call-id')};from-tag=${tagOf(header(invite, 'from'))}`);
    expect(ack.uri).toBe(peer.uri);
    expect(header(ack, 'cseq')).toBe(`${cseqOf(invite)} ACK`);
    expect(branchOf(ack)).not.toBe(branchOf(invite));

    const ending = dialog.destroy();
    const bye = await peer.request('BYE');
    expect(tagOf(header(bye, 'to'))).toBe('peer-tag');
    expect(cseqOf(bye)).toBe(cseqOf(invite) + 1);
    peer.reply(bye, 200, { contact: null });
    await ending;
    await untilCounts(server, ({ dialogs }) => dialogs === 0);
  });

  it('ends with a BYE of the peer', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const { dialog, invite, answer } = await establish(srf, peer);
    const destroyed = new Promise<TestRequest>((resolve) => dialog.on('destroy', resolve));
    peer.send(peer.withinAnswered(invite, answer, 'BYE', 1));
    expect((await destroyed).method).toBe('BYE');
    await peer.response(200);
    await expect(dialog.request({ method: 'INFO' })).rejects.toMatchObject({ code: 'ENODIALOG' });
  });

  it('works over TCP on a single connection', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer('tcp');
    const { dialog, invite } = await establish(srf, peer);
    expect(header(invite, 'via')).toMatch(/^SIP\/2\.0\/TCP /);
    expect(header(invite, 'contact')).toContain(';transport=tcp');
    const ending = dialog.destroy();
    peer.reply(await peer.request('BYE'), 200, { contact: null });
    await ending;
  });

  it('acknowledges a busy response and reports it to the application', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const calling = outcome(srf.createUAC(peer.uri, { localSdp: SDP }));
    const invite = await peer.request('INVITE');
    peer.reply(invite, 486);
    const ack = await peer.request('ACK');
    expect(branchOf(ack)).toBe(branchOf(invite));
    expect(tagOf(header(ack, 'to'))).toBe('peer-tag');
    expect(await calling).toMatchObject({ status: 486 });
    // A repeated rejection is acknowledged again, but delivered once.
    peer.reply(invite, 486);
    await peer.request('ACK');
    await untilCounts(server, ({ transactions }) => transactions.outgoing === 0);
  });

  it('reports a response whose reason phrase drachtio-srf cannot read', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const calling = outcome(srf.createUAC(peer.uri, { localSdp: SDP }));
    peer.reply(await peer.request('INVITE'), 486, { reasonPhrase: 'busy\u2028here\u2029now' });
    expect(await calling).toMatchObject({ status: 486, reason: 'busy here now' });
  });

  it('reports a redirection with its Contact', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const calling = outcome(srf.createUAC(peer.uri, { localSdp: SDP }));
    peer.reply(await peer.request('INVITE'), 302, { contact: '<sip:elsewhere@127.0.0.1>' });
    const error = (await calling) as { status: number; res: { get(name: string): string } };
    expect(error.status).toBe(302);
    expect(error.res.get('Contact')).toBe('<sip:elsewhere@127.0.0.1>');
  });

  it('responds to a 407 with credentials, the same Call-ID and From tag, and the next CSeq', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP, auth: { username: 'alice', password: 'secret' } });
    const first = await peer.request('INVITE');
    peer.reply(first, 407, {
      contact: null,
      headers: [['Proxy-Authenticate', 'Digest realm="carrier, inc", nonce="abc", qop="auth", algorithm=MD5']],
    });
    await peer.request('ACK');
    const second = await peer.request('INVITE');
    expect(header(second, 'call-id')).toBe(header(first, 'call-id'));
    expect(header(second, 'from')).toBe(header(first, 'from'));
    expect(tagOf(header(second, 'to'))).toBeNull();
    expect(cseqOf(second)).toBe(cseqOf(first) + 1);
    expect(header(second, 'proxy-authorization')).toContain('username="alice"');
    peer.reply(second, 200, { body: SDP });
    const ack = await peer.request('ACK');
    expect(header(ack, 'proxy-authorization')).toBe(header(second, 'proxy-authorization'));
    expect((await calling).connected).toBe(true);
  });

  it('uses the proxy of the application without a Route header', async () => {
    const { srf } = await harness.start();
    const proxy = await harness.peer();
    const calling = srf.createUAC('sip:bob@unknown.invalid', { localSdp: SDP, proxy: `sip:127.0.0.1:${proxy.port}` });
    const invite = await proxy.request('INVITE');
    expect(invite.uri).toBe('sip:bob@unknown.invalid');
    expect(headers(invite, 'route')).toEqual([]);
    proxy.reply(invite, 200, { body: SDP });
    await proxy.request('ACK');
    await calling;
  });

  it('follows the recorded route set by loose routing', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const next = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    const invite = await peer.request('INVITE');
    const routes: [string, string][] = [
      ['Record-Route', '<sip:far.invalid;lr>'],
      ['Record-Route', `<sip:127.0.0.1:${next.port};lr>`],
    ];
    peer.reply(invite, 200, { body: SDP, headers: routes, contact: '<sip:bob@nowhere.invalid>' });
    const ack = await next.request('ACK');
    expect(ack.uri).toBe('sip:bob@nowhere.invalid');
    expect(headers(ack, 'route')).toEqual([`<sip:127.0.0.1:${next.port};lr>`, '<sip:far.invalid;lr>']);
    await calling;
  });

  it('puts a strict router into the request URI', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const next = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    const invite = await peer.request('INVITE');
    const routes: [string, string][] = [['Record-Route', `<sip:127.0.0.1:${next.port}>`]];
    peer.reply(invite, 200, { body: SDP, headers: routes, contact: '<sip:bob@nowhere.invalid>' });
    const ack = await next.request('ACK');
    expect(ack.uri).toBe(`sip:127.0.0.1:${next.port}`);
    expect(headers(ack, 'route')).toEqual(['<sip:bob@nowhere.invalid>']);
    await calling;
  });

  it('acknowledges a repeated answer without the application', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const { invite } = await establish(srf, peer);
    peer.reply(invite, 200, { body: SDP });
    const again = await peer.request('ACK');
    expect(header(again, 'cseq')).toBe(`${cseqOf(invite)} ACK`);
  });

  it('hangs up a second answering fork', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const { dialog, invite } = await establish(srf, peer);
    peer.reply(invite, 200, { body: SDP, toTag: 'late-fork' });
    const ack = await peer.next((message) => message.kind === 'request' && message.method === 'ACK');
    expect(tagOf(header(ack, 'to'))).toBe('late-fork');
    const bye = await peer.request('BYE');
    expect(tagOf(header(bye, 'to'))).toBe('late-fork');
    peer.reply(bye, 200, { contact: null });
    const ending = dialog.destroy();
    const own = await peer.request('BYE');
    expect(tagOf(header(own, 'to'))).toBe('peer-tag');
    peer.reply(own, 200, { contact: null });
    await ending;
  });

  it('belongs to the fork that answers, not to the last ringing one', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    const invite = await peer.request('INVITE');
    peer.reply(invite, 180, { toTag: 'first' });
    peer.reply(invite, 180, { toTag: 'second' });
    peer.reply(invite, 200, { toTag: 'first', body: SDP });
    expect(tagOf(header(await peer.request('ACK'), 'to'))).toBe('first');
    const dialog = await calling;
    const ending = dialog.destroy();
    const bye = await peer.request('BYE');
    expect(tagOf(header(bye, 'to'))).toBe('first');
    peer.reply(bye, 200, { contact: null });
    await ending;
  });

  it('acknowledges reliable early media with PRACK', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP, headers: { Supported: '100rel' } });
    const invite = await peer.request('INVITE');
    const reliable: [string, string][] = [
      ['Require', '100rel'],
      ['RSeq', '42'],
    ];
    peer.reply(invite, 183, { body: SDP, headers: reliable });
    const prack = await peer.request('PRACK');
    expect(header(prack, 'rack')).toBe(`42 ${cseqOf(invite)} INVITE`);
    expect(cseqOf(prack)).toBe(cseqOf(invite) + 1);
    peer.reply(prack, 200, { contact: null });
    peer.reply(invite, 200, { body: SDP });
    expect(header(await peer.request('ACK'), 'cseq')).toBe(`${cseqOf(invite)} ACK`);
    await calling;
  });

  it('authenticates its BYE on a challenge', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP, auth: { username: 'alice', password: 'secret' } });
    peer.reply(await peer.request('INVITE'), 200, { body: SDP });
    await peer.request('ACK');
    const dialog = await calling;
    void dialog.destroy();
    const challenge: [string, string][] = [['Proxy-Authenticate', 'Digest realm="carrier", nonce="abc"']];
    const first = await peer.request('BYE');
    peer.reply(first, 407, { contact: null, headers: challenge });
    const second = await peer.request('BYE');
    expect(cseqOf(second)).toBe(cseqOf(first) + 1);
    expect(header(second, 'proxy-authorization')).toContain('realm="carrier"');
    peer.reply(second, 200, { contact: null });
    await untilCounts(server, ({ dialogs }) => dialogs === 0);
  });

  it('survives an invalid Record-Route', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    const garbage: [string, string][] = ['<', '"', '<tel:1>', ',,', '<sip:>', ';lr'].map((value) => [
      'Record-Route',
      value,
    ]);
    peer.reply(await peer.request('INVITE'), 200, { body: SDP, headers: garbage });
    await peer.request('ACK');
    expect((await calling).connected).toBe(true);
  });

  it('acknowledges and ends an answer without Contact, which drachtio-srf rejects', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const calling = outcome(srf.createUAC(peer.uri, { localSdp: SDP }));
    peer.reply(await peer.request('INVITE'), 200, { body: SDP, contact: null });
    await peer.request('ACK');
    peer.reply(await peer.request('BYE'), 200, { contact: null });
    expect(await calling).toMatchObject({ status: 500 });
  });

  it('ends with 408 without an answer', async () => {
    const { srf } = await harness.start({ timers: { t1Ms: 20, inviteTimeoutMs: 400 } });
    const peer = await harness.peer();
    expect(await outcome(srf.createUAC(peer.uri, { localSdp: SDP }))).toMatchObject({ status: 408 });
    expect(peer.inbox.length).toBeGreaterThan(1);
    expect(new Set(peer.inbox.map(branchOf)).size).toBe(1);
  });

  it('ends with 503 at once if the port is closed', async () => {
    const { srf } = await harness.start({ timers: { inviteTimeoutMs: 60_000 } });
    for (const transport of ['udp', 'tcp'] as const) {
      const peer = await harness.peer(transport);
      await peer.close();
      expect(await outcome(srf.createUAC(peer.uri, { localSdp: SDP }))).toMatchObject({ status: 503 });
    }
  });

  it('sends its INVITE once more if the peer closes an earlier connection', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer('tcp');
    await establish(srf, peer);
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    const first = await peer.request('INVITE');
    peer.dropStreams();
    const again = await peer.request('INVITE');
    expect(serializeMessage(again)).toEqual(serializeMessage(first));
    peer.reply(again, 200, { body: SDP });
    await peer.request('ACK');
    const ending = (await calling).destroy();
    const bye = await peer.request('BYE');
    peer.dropStreams();
    expect(branchOf(await peer.request('BYE'))).toBe(branchOf(bye));
    peer.reply(bye, 200, { contact: null });
    await ending;
  });

  it('sends its INVITE only once more, and not after a response', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer('tcp');
    await establish(srf, peer);
    const failing = outcome(srf.createUAC(peer.uri, { localSdp: SDP }));
    for (const _attempt of ['first', 'second']) {
      await peer.request('INVITE');
      peer.dropStreams();
    }
    expect(await failing).toMatchObject({ status: 503 });
    await establish(srf, peer);
    const ringing = Promise.withResolvers<void>();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP }, { cbProvisional: () => ringing.resolve() });
    const invite = await peer.request('INVITE');
    peer.reply(invite, 180);
    await ringing.promise;
    peer.dropStreams();
    // Only this one opens the new connection.
    const probing = probe(srf, peer);
    peer.reply(await peer.request('OPTIONS'), 200);
    expect(await probing).toBe(200);
    expect(peer.inbox).toEqual([]);
    peer.reply(invite, 486);
    expect(await outcome(calling)).toMatchObject({ status: 486 });
  });

  it('does not send its INVITE once more after it was cancelled', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer('tcp');
    await establish(srf, peer);
    const { calling, request } = await place(srf, peer);
    await peer.request('INVITE');
    await new Promise((resolve) => request.cancel({}, resolve));
    peer.dropStreams();
    expect(await calling).toMatchObject({ status: 503 });
    expect(peer.inbox).toEqual([]);
  });

  it('ends with 503 if the name does not resolve', async () => {
    const { srf } = await harness.start();
    expect(await outcome(srf.createUAC('sip:a@no-such-host.invalid', { localSdp: SDP }))).toMatchObject({
      status: 503,
    });
  });

  it('fails without sending if its transport is disabled', async () => {
    const { srf } = await harness.start({ transports: ['udp'] });
    await expect(srf.createUAC('sip:a@127.0.0.1;transport=tcp', { localSdp: SDP })).rejects.toMatchObject({
      code: 'EDRACHTIO',
    });
    await expect(srf.createUAC('sips:a@127.0.0.1', { localSdp: SDP })).rejects.toMatchObject({ code: 'EDRACHTIO' });
  });
});

describe('CANCEL', () => {
  it('waits for the first 1xx and ends the call with the 487 of the peer', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const { calling, request } = await place(srf, peer);
    const cancelled = new Promise<Error | null>((resolve) =>
      request.cancel({ headers: { Reason: 'SIP;cause=200' } }, resolve),
    );
    const invite = await peer.request('INVITE');
    expect(await cancelled).toBeNull();
    expect(peer.inbox.some((message) => message.kind === 'request' && message.method === 'CANCEL')).toBe(false);
    peer.reply(invite, 180);
    const cancel = await peer.request('CANCEL');
    expect(branchOf(cancel)).toBe(branchOf(invite));
    expect(header(cancel, 'cseq')).toBe(`${cseqOf(invite)} CANCEL`);
    expect(header(cancel, 'reason')).toBe('SIP;cause=200');
    expect(tagOf(header(cancel, 'to'))).toBeNull();
    peer.reply(cancel, 200, { contact: null });
    peer.reply(invite, 487, { contact: null });
    await peer.request('ACK');
    expect(await calling).toMatchObject({ status: 487 });
  });

  it('leads to ACK, BYE and destroy if it crosses the answer', async () => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    const { calling, request } = await place(srf, peer);
    const invite = await peer.request('INVITE');
    peer.reply(invite, 180);
    request.cancel();
    await peer.request('CANCEL');
    peer.reply(invite, 200, { body: SDP });
    await peer.request('ACK');
    const bye = await peer.request('BYE');
    const dialog = (await calling) as TestDialog;
    const destroyed = dialog.connected ? new Promise<void>((resolve) => dialog.on('destroy', () => resolve())) : null;
    await destroyed;
    expect(dialog.connected).toBe(false);
    peer.reply(bye, 200, { contact: null });
    await untilCounts(server, ({ dialogs }) => dialogs === 0);
  });

  it('ends with 408 if the peer never ends the cancelled INVITE', async () => {
    const { srf } = await harness.start({ timers: { t1Ms: 5 } });
    const peer = await harness.peer();
    const { calling, request } = await place(srf, peer);
    peer.reply(await peer.request('INVITE'), 180);
    request.cancel();
    peer.reply(await peer.request('CANCEL'), 200, { contact: null });
    expect(await calling).toMatchObject({ status: 408 });
  });
});

describe('requests in an outgoing call', () => {
  it('carry INFO and OPTIONS and return their responses', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const { dialog, invite } = await establish(srf, peer);
    for (const [index, method] of ['INFO', 'OPTIONS'].entries()) {
      const headersSent = method === 'INFO' ? { 'Content-Type': 'application/dtmf-relay' } : {};
      const answered = dialog.request({
        method,
        headers: headersSent,
        ...(method === 'INFO' ? { body: 'Signal=5' } : {}),
      });
      const request = await peer.request(method);
      expect(request.uri).toBe(peer.uri);
      expect(cseqOf(request)).toBe(cseqOf(invite) + 1 + index);
      peer.reply(request, 200, { contact: null });
      expect((await answered).status).toBe(200);
    }
  });

  it('renegotiate by re-INVITE and follow the new Contact of the peer', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const moved = await harness.peer();
    const { dialog, invite } = await establish(srf, peer);
    const modified = dialog.modify(SDP.replace('40000', '50000'));
    const reinvite = await reInvite(peer);
    expect(cseqOf(reinvite)).toBe(cseqOf(invite) + 1);
    expect(tagOf(header(reinvite, 'to'))).toBe('peer-tag');
    peer.reply(reinvite, 200, { body: SDP, contact: `<${moved.uri}>` });
    expect(header(await moved.request('ACK'), 'cseq')).toBe(`${cseqOf(reinvite)} ACK`);
    expect(await modified).toBe(SDP);
    const ending = dialog.destroy();
    moved.reply(await moved.request('BYE'), 200, { contact: null });
    await ending;
  });

  it('survive a rejected re-INVITE', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const { dialog } = await establish(srf, peer);
    const answered = dialog.request({ method: 'INVITE', body: SDP });
    peer.reply(await reInvite(peer), 488);
    await peer.request('ACK');
    expect((await answered).status).toBe(488);
    const again = dialog.request({ method: 'INVITE', body: SDP });
    const second = await reInvite(peer);
    peer.reply(second, 200, { body: SDP });
    expect(header(await peer.request('ACK'), 'cseq')).toBe(`${cseqOf(second)} ACK`);
    expect((await again).status).toBe(200);
  });

  it('answer a crossing re-INVITE with 491', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const { dialog, invite, answer } = await establish(srf, peer);
    const answered = dialog.request({ method: 'INVITE', body: SDP });
    const ours = await reInvite(peer);
    peer.send(peer.withinAnswered(invite, answer, 'INVITE', 1));
    await peer.response(491);
    peer.reply(ours, 491);
    expect((await answered).status).toBe(491);
  });

  it('report 503 if the peer disappeared', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const { dialog } = await establish(srf, peer);
    await peer.close();
    expect((await dialog.request({ method: 'OPTIONS' })).status).toBe(503);
  });
});

describe('out-of-dialog OPTIONS', () => {
  it('reaches the trunk and returns its status', async () => {
    const { srf } = await harness.start();
    const peer = await harness.peer();
    const status = probe(srf, peer);
    const options = await peer.request('OPTIONS');
    expect(header(options, 'from')).toMatch(/^<sip:127\.0\.0\.1>;tag=/);
    expect(header(options, 'to')).toBe(`<${peer.uri}>`);
    peer.reply(options, 404, { contact: null });
    expect(await status).toBe(404);
  });
});

/** The next INVITE in the dialog. The first one may have been repeated before its answer arrived. */
async function reInvite(peer: SipPeer): Promise<SipRequest> {
  for (;;) {
    const request = await peer.request('INVITE');
    if (tagOf(header(request, 'to')) !== null) return request;
  }
}

async function establish(
  srf: TestSrf,
  peer: SipPeer,
): Promise<{ dialog: TestDialog; invite: SipRequest; answer: ReturnType<SipPeer['reply']> }> {
  const calling = srf.createUAC(peer.uri, { localSdp: SDP });
  const invite = await peer.request('INVITE');
  const answer = peer.reply(invite, 200, { body: SDP });
  await peer.request('ACK');
  return { dialog: await calling, invite, answer };
}

function probe(srf: TestSrf, peer: SipPeer): Promise<number> {
  return new Promise((resolve, reject) => {
    srf.request(peer.uri, { method: 'OPTIONS' }, (error, request) => {
      if (error) reject(error);
      else request.on('response', (response) => resolve(response.status));
    });
  });
}

/** A call whose request is available before its outcome. */
async function place(srf: TestSrf, peer: SipPeer): Promise<{ calling: Promise<unknown>; request: TestRequest }> {
  const { promise, resolve } = Promise.withResolvers<TestRequest>();
  const calling = outcome(
    srf.createUAC(peer.uri, { localSdp: SDP }, { cbRequest: (_error, request) => resolve(request) }),
  );
  return { calling, request: await promise };
}

function outcome(calling: Promise<TestDialog>): Promise<unknown> {
  return calling.catch((error: unknown) => error);
}
