import { afterEach, describe, expect, test } from 'vitest';
import type { LegEvent } from '../../machines/events.ts';
import { createDrachtioGateway } from '../../sip/sip-gateway.drachtio.ts';
import { EventLog } from '../softphone/event-log.ts';
import { trunkOf } from './dialing.ts';
import { type ScriptedMessage, ScriptedServer } from './scripted-server.ts';

const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const OFFER = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 0\r\n';
const DIALOG = 'one;from-tag=theirs';

interface Invitation {
  trustedProxies?: readonly string[];
  headers?: readonly string[];
  type?: string;
  body?: string;
  /** The call rings and is not answered. Default false. */
  isRinging?: boolean;
}

/** An inbound call that is answered at once, at a server that does not confirm the 200. */
async function answered({
  trustedProxies = [],
  headers = [],
  type = 'application/sdp',
  body: offer = OFFER,
  isRinging = false,
}: Invitation = {}) {
  const ok = Promise.withResolvers<ScriptedMessage>();
  const onMessage = (message: ScriptedMessage) => {
    if (/^SIP\/2.0 [1-6]/.test(message.sip)) ok.resolve(message);
  };
  const server = await ScriptedServer.start({ onMessage });
  cleanUps.push(() => server.stop());
  const gateway = await createDrachtioGateway({ host: '127.0.0.1', port: server.port, secret: 's', trustedProxies });
  cleanUps.push(() => gateway.close());
  const log = new EventLog<LegEvent>();
  const controller = new AbortController();
  cleanUps.push(async () => controller.abort());
  const sources: string[] = [];
  gateway.onCall((call) => {
    sources.push(call.source.host);
    if (isRinging) call.ring();
    else
      call.answer({
        trunk: trunkOf('sip:127.0.0.1:9'),
        localMedia: { host: '127.0.0.1', rtpPort: 40_000 },
        callId: 'call-1',
        leg: 'customer',
        signal: controller.signal,
        onEvent: (event) => log.add(event),
      });
  });
  const send = (
    method: string,
    { dialogId = '', tag = '', lines = [] as readonly string[], body = '', bodyType = type } = {},
  ) =>
    server.send(
      [
        `x|sip|network|1|udp|127.0.0.1|5060|10:00:00.000000|t1|${dialogId}|127.0.0.1|5060|`,
        `${method} sip:+918000000001@127.0.0.1 SIP/2.0`,
        'From: <sip:+919876543210@127.0.0.1>;tag=theirs',
        `To: <sip:+918000000001@127.0.0.1>${tag}`,
        'Call-ID: one',
        `CSeq: 1 ${method}`,
        'Contact: <sip:peer@127.0.0.1>',
        ...lines,
        ...(body === '' ? [] : [`Content-Type: ${bodyType}`]),
        `Content-Length: ${body.length}`,
        '',
        body,
      ].join('\r\n'),
    );
  send('INVITE', { lines: headers, body: offer });
  return { answer: await ok.promise, server, send, log, controller, sources };
}

describe('session timer of a caller', () => {
  test.each([
    { what: 'that refreshes', lines: ['Supported: 100rel, timer'], agreed: '1800;refresher=uac', require: 'timer' },
    { what: 'without session timers', lines: [], agreed: '1800;refresher=uas', require: undefined },
  ])('$what is refreshed by the right side (RFC 4028 section 9)', async ({ lines, agreed, require }) => {
    const { answer } = await answered({ headers: ['Session-Expires: 1800', ...lines] });
    expect(/^session-expires: (.*)$/im.exec(answer.sip)?.[1]).toBe(agreed);
    expect(/^require: (.*)$/im.exec(answer.sip)?.[1]).toBe(require);
  });
});

describe('a required extension', () => {
  test.each(['replaces', 'timer, Replaces,norefersub'])(
    'rejects a call with %s (RFC 3261 section 8.2.2.3)',
    async (required) => {
      const { answer, sources } = await answered({
        headers: [`Require: ${required}`, 'Replaces: other;to-tag=1;from-tag=2'],
      });
      expect(answer.sip).toMatch(/^SIP\/2.0 420 /);
      expect(/^unsupported: (.*)$/im.exec(answer.sip)?.[1]).toBe(required.replace('timer, ', '').replace(',', ', '));
      expect(sources).toEqual([]);
    },
  );

  test('accepts a call with session timers', async () => {
    const { answer } = await answered({ headers: ['Require: timer', 'Session-Expires: 1800'] });
    expect(answer.sip).toMatch(/^SIP\/2.0 200 /);
  });

  test('rejects other requests with it, except BYE', async () => {
    const { server, send } = await answered();
    send('OPTIONS', { lines: ['Require: norefersub'] });
    await server.until(({ sip }) => sip.startsWith('SIP/2.0 420 ') && sip.includes('OPTIONS'));
    send('BYE', { tag: ';tag=unknown', lines: ['Require: norefersub'] });
    await server.until(({ sip }) => sip.startsWith('SIP/2.0 481 ') && sip.includes('BYE'));
  });
});

test.each([
  ['an escape', '%56ia'],
  ['an escape, folded', '%56ia\r\n '],
])('a caller behind a trusted proxy cannot forge its address by a header name with %s', async (_, name) => {
  const { sources } = await answered({
    trustedProxies: ['127.0.0.1'],
    headers: [
      `${name}: SIP/2.0/UDP 127.0.0.1, SIP/2.0/UDP 198.51.100.9;received=203.0.113.9`,
      'Via: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK1',
      'Via: SIP/2.0/UDP 192.168.1.2;branch=z9hG4bK2;received=192.0.2.66',
    ],
  });
  expect(sources).toEqual(['192.0.2.66']);
});

describe('a request of the caller while the call rings', () => {
  test.each([
    { what: 'a key press', method: 'INFO', type: 'application/dtmf-relay', body: 'Signal=5', status: 200 },
    { what: 'other information', method: 'INFO', type: 'application/x-other', body: 'x', status: 415 },
    { what: 'OPTIONS', method: 'OPTIONS', type: '', body: '', status: 200 },
    { what: 'UPDATE', method: 'UPDATE', type: '', body: '', status: 200 },
    { what: 'an offer by UPDATE', method: 'UPDATE', type: 'application/sdp', body: OFFER, status: 500 },
    { what: 'MESSAGE', method: 'MESSAGE', type: '', body: '', status: 405 },
  ])('with $what gets $status, not the 481 that ends a call', async ({ method, type, body, status }) => {
    const { server, send } = await answered({ isRinging: true });
    send(method, { dialogId: DIALOG, tag: ';tag=ours', body, bodyType: type });
    const isResponse = ({ sip }: ScriptedMessage) => new RegExp(`^SIP.*cseq: 1 ${method}\\b`, 'is').test(sip);
    await server.until(isResponse);
    expect(server.received.find(isResponse)?.sip).toMatch(new RegExp(`^SIP/2.0 ${status} `));
  });
});

test('an offer beside ISUP in a multipart body is answered (RFC 5621)', async () => {
  const isup = ['--b', 'Content-Type: application/isup', '', 'x'];
  const body = [...isup, '--b', 'Content-Type: application/sdp', '', `${OFFER}--b--`, ''].join('\r\n');
  const { answer } = await answered({ type: 'multipart/mixed; boundary=b', body });
  expect(answer.sip).toMatch(/^SIP\/2.0 200 /);
});

test('an answer that crosses the CANCEL of the caller ends the leg at once', async () => {
  const { answer, log } = await answered();
  // The server has already rejected the INVITE with 487.
  answer.send(`x|response|${answer.id}|NOK|unable to find transaction for transaction id provided`);
  expect(await log.until('leg.ended')).toMatchObject({ by: 'peer', hangupCause: 'ORIGINATOR_CANCEL' });
});

test('a caller whose ACK arrives after the leg was given up receives BYE', async () => {
  const { server, send, log, controller } = await answered();
  controller.abort();
  await log.until('leg.ended');
  send('ACK', { dialogId: DIALOG, tag: ';tag=ours' });
  await server.until(({ words, sip }) => words[2] === DIALOG && sip.startsWith('BYE '));
});
