import { describe, expect, it } from 'vitest';
import { callMessages } from '../../../sip/trace/call-messages.ts';
import { createCallTracer } from '../../../sip/trace/call-tracer.ts';
import { readDrachtioMessage } from '../../../sip/trace/drachtio-messages.ts';
import type { CallMessage, WireMessage } from '../../../sip/trace/wire-message.ts';

const PEER = { host: '10.0.0.1', port: 5060 };
const AT_MS = 1_000;

function wire(sipCallId: string, text: string): WireMessage {
  return { sipCallId, atMs: AT_MS, direction: 'sent', transport: 'udp', local: null, remote: PEER, text };
}

function seen(text: string) {
  const bytes = Buffer.from(text.replaceAll('\n', '\r\n'));
  return { atMs: AT_MS, direction: 'sent' as const, transport: 'udp', local: null, remote: PEER, bytes };
}

function startTracer() {
  const messages: CallMessage[] = [];
  let nowMs = 0;
  const tracer = createCallTracer({ onMessage: (message) => messages.push(message), nowMs: () => nowMs });
  return { tracer, messages, wait: (ms: number) => (nowMs += ms) };
}

describe('call tracer', () => {
  it('assigns a message to its call and leg, even before the leg is known', () => {
    const { tracer, messages } = startTracer();
    tracer.take([wire('one', 'INVITE'), wire('two', 'INVITE')]);
    tracer.bind('one', { callId: 'call', leg: 'agent' });
    tracer.take([wire('one', 'BYE')]);
    expect(messages.map(({ callId, leg, text }) => [callId, leg, text])).toEqual([
      ['call', 'agent', 'INVITE'],
      ['call', 'agent', 'BYE'],
    ]);
    expect(tracer.dump()).toEqual({ bound: 1, waiting: 1, dropped: 0 });
  });

  it('forgets messages without a call after a minute', () => {
    const { tracer, messages, wait } = startTracer();
    tracer.take([wire('stranger', 'INVITE')]);
    wait(60_001);
    tracer.take([wire('other', 'INVITE')]);
    tracer.bind('stranger', { callId: 'call', leg: 'agent' });
    expect(messages).toEqual([]);
    expect(tracer.dump()).toMatchObject({ waiting: 1, dropped: 1 });
  });

  it('limits what strangers make it remember', () => {
    const { tracer } = startTracer();
    for (let i = 0; i < 3_000; i++) tracer.take([wire(`stranger-${i}`, 'INVITE')]);
    expect(tracer.dump().waiting).toBeLessThanOrEqual(1_000);
    tracer.take(Array.from({ length: 20 }, (_, i) => wire(`large-${i}`, 'x'.repeat(1_000_000))));
    expect(tracer.dump().waiting).toBeLessThanOrEqual(8);
    expect(tracer.dump().dropped).toBeGreaterThan(3_000);
  });
});

describe('call messages', () => {
  it('share the Call-ID of an INVITE, in any header form', () => {
    const pick = callMessages();
    expect(pick(seen('OPTIONS sip:x SIP/2.0\nCall-ID: probe\n\n'))).toBeNull();
    expect(pick(seen('SIP/2.0 200 OK\nCall-ID: probe\n\n'))).toBeNull();
    expect(pick(seen('INVITE sip:x SIP/2.0\ni:  one\n\n'))).toMatchObject({ sipCallId: 'one' });
    expect(pick(seen('SIP/2.0 200 OK\nCALL-ID :one\n\n'))).toMatchObject({ sipCallId: 'one' });
    expect(pick(seen('INVITE sip:x SIP/2.0\n\n'))).toBeNull();
  });

  it('contain masked secrets', () => {
    const message = callMessages()(seen('INVITE sip:x SIP/2.0\nCall-ID: a\nAuthorization: Basic abcdef\n\n'));
    expect(message?.text).toContain('Authorization: Basic ***');
  });
});

describe('drachtio-server frames', () => {
  const sip = 'SIP/2.0 200 OK\r\nCall-ID: a\r\n\r\n';
  const time = '10:00:00.000001';

  it('show received messages with the address of the peer', () => {
    const frame = `id|sip|network|400|tcp|10.0.0.1|5070|${time}|txn|dialog|\r\n${sip}`;
    expect(readDrachtioMessage(frame, AT_MS)).toEqual({
      ...{
        atMs: AT_MS,
        direction: 'received',
        transport: 'tcp',
        local: null,
        remote: { host: '10.0.0.1', port: 5070 },
      },
      bytes: Buffer.from(sip),
    });
    const request = `id|sip|network|400|udp|10.0.0.1|5070|${time}|txn||10.0.0.2|5060|\r\nINVITE sip:x SIP/2.0\r\n\r\n`;
    expect(readDrachtioMessage(request, AT_MS)?.local).toEqual({ host: '10.0.0.2', port: 5060 });
  });

  it('show sent messages, requests without the address of the peer', () => {
    const head = `id|response|command|OK|application|400|udp|10.0.0.2|5060|${time}|txn`;
    const request = readDrachtioMessage(`${head}|Msg sent:|\r\nINVITE sip:x SIP/2.0\r\n\r\n`, AT_MS);
    expect(request).toMatchObject({ direction: 'sent', local: { host: '10.0.0.2', port: 5060 }, remote: null });
    const response = readDrachtioMessage(`${head}|dialog||Msg sent:|\r\n${sip}`, AT_MS);
    expect(response).toMatchObject({ direction: 'sent', local: null, remote: { host: '10.0.0.2', port: 5060 } });
  });

  it('show nothing that was not on the wire', () => {
    for (const frame of [
      'id|response|command|OK|pong',
      'id|response|command|NOK|unable\r\nx',
      `id|sip|network|0|udp||0|${time}|txn|dialog|\r\n${sip}`,
      `id|sip|application|200|udp|10.0.0.1|5060|${time}|unsolicited|dialog|\r\n${sip}`,
      '',
    ]) {
      expect(readDrachtioMessage(frame, AT_MS), frame).toBeNull();
    }
  });
});
