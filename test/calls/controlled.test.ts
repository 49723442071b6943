import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallEvent } from '../../bin/cli/api-client.ts';
import { dtmfTones } from '../../media/dsp/dtmf-tones.ts';
import { levelDbov } from '../../media/dsp/level.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { nextLevel, untilLevel } from './next-level.ts';
import { AGENT_HZ, CUSTOMER_HZ, type Platform, startPlatform } from './platform.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

const SAMPLES_PER_S = 8000;

async function talk(request: Record<string, unknown> = {}) {
  const phones = await platform.parties();
  const { call_id: callId } = await platform.place(request);
  await platform.until(callId, 'call.bridged');
  const control = (path: string, body?: unknown) => platform.ask('POST', `/dialer/click2call/${callId}/${path}`, body);
  return { ...phones, callId, control };
}

const withoutEvents = (sdp: string) => sdp.replace(/(m=audio .*) 101/, '$1').replace(/a=(rtpmap|fmtp):101 .*\r\n/g, '');

const named = (events: readonly CallEvent[], prefix: string) => events.filter(({ event }) => event.startsWith(prefix));

/** The pressed keys with their legs, in order. */
const keysOf = (events: readonly CallEvent[]) => named(events, 'dtmf.').map(({ leg, data }) => `${leg} ${data?.digit}`);

describe('control of a live call', () => {
  it("sends digits to the customer, and receives the customer's own", async () => {
    const { agent, customer, callId, control } = await talk();
    const sent = await control('dtmf', { leg: 'customer', digits: '12w#', duration_ms: 100 });
    expect(sent.status).toBe(200);
    await customer.untilReceived(({ digits }) => digits === '12#');
    expect(agent.received().digits).toBe('');
    customer.sendDtmf('5*');
    await platform.until(callId, 'dtmf.received', ({ data }) => data?.digit === '*');
    agent.hangup();
    const events = await platform.ended(callId);
    expect(named(events, 'dtmf.').map(({ event, leg, data }) => ({ event, leg, data }))).toEqual([
      { event: 'dtmf.sent', leg: 'customer', data: { digits: '12w#' } },
      { event: 'dtmf.received', leg: 'customer', data: { digit: '5' } },
      { event: 'dtmf.received', leg: 'customer', data: { digit: '*' } },
    ]);
    expect(customer.received().continuity).toMatchObject({ foreign: 0, lost: 0 });
  });

  it('receives tones and INFO from phones without telephone events, each once', async () => {
    const { promise: talking, resolve: startPressing } = Promise.withResolvers<void>();
    const samples = dtmfTones('19#', 100);
    const { customer, agent } = await platform.parties({
      customer: { alterSdp: withoutEvents, audio: { kind: 'samples', samples, after: () => talking } },
      agent: { alterSdp: withoutEvents },
    });
    const { call_id: callId } = await platform.place();
    await platform.until(callId, 'call.bridged');
    await customer.untilReceived(({ packets }) => packets > 10);
    startPressing();
    await platform.until(callId, 'dtmf.received', ({ data }) => data?.digit === '#');
    const relay = [['Content-Type', 'application/dtmf-relay']] as const;
    expect(await agent.call.send('INFO', relay, 'Signal=7\r\nDuration=160\r\n')).toBe(200);
    // The customer's phone also sends its last key as INFO.
    expect(await customer.call.send('INFO', relay, 'Signal=11\r\nDuration=160\r\n')).toBe(200);
    await platform.until(callId, 'dtmf.received', ({ data }) => data?.digit === '7');
    agent.hangup();
    const events = await platform.ended(callId);
    expect(keysOf(events)).toEqual(['customer 1', 'customer 9', 'customer #', 'agent 7']);
  });

  it('passes on keys by INFO, except to a party that does not hear the leg', async () => {
    const { customer, agent } = await platform.parties({ agent: { alterSdp: withoutEvents } });
    const { call_id: callId } = await platform.place();
    await platform.until(callId, 'call.bridged');
    const press = (key: string) =>
      agent.call.send('INFO', [['Content-Type', 'application/dtmf-relay']], `Signal=${key}\r\nDuration=100\r\n`);
    await press('4');
    await press('2');
    await customer.untilReceived(({ digits }) => digits === '42');
    const mute = (path: string) => platform.ask('POST', `/dialer/click2call/${callId}/${path}`, { leg: 'agent' });
    expect((await mute('mute')).status).toBe(200);
    await press('9');
    await platform.until(callId, 'dtmf.received', ({ data }) => data?.digit === '9');
    expect((await mute('unmute')).status).toBe(200);
    await press('*');
    await customer.untilReceived(({ digits }) => digits === '42*');
    agent.hangup();
    const events = await platform.ended(callId);
    expect(keysOf(events)).toEqual(['agent 4', 'agent 2', 'agent 9', 'agent *']);
  });

  it('mutes the agent towards the customer only, and unmutes again', async () => {
    const { agent, customer, callId, control } = await talk();
    await customer.untilReceived(({ packets }) => packets > 30);
    expect((await control('mute', { leg: 'agent' })).status).toBe(200);
    await untilLevel(agent, CUSTOMER_HZ, { above: -20 });
    // Silence packets continue, because phones end a call without packets.
    await untilLevel(customer, AGENT_HZ, { below: -60 });
    expect((await control('unmute', { leg: 'agent' })).status).toBe(200);
    await untilLevel(customer, AGENT_HZ, { above: -20 });
    agent.hangup();
    const events = await platform.ended(callId);
    expect(named(events, 'call.').map(({ event, leg }) => `${event} ${leg}`)).toEqual(
      expect.arrayContaining(['call.muted agent', 'call.unmuted agent']),
    );
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', hangup_cause: 'NORMAL_CLEARING' });
  });

  it('holds the customer with music and a re-INVITE, and resumes', async () => {
    const { agent, customer, callId, control } = await talk();
    await agent.untilReceived(({ packets }) => packets > 30);
    expect((await control('hold', { leg: 'customer' })).status).toBe(200);
    const held = await customer.log.until('reinvite');
    expect(held).toMatchObject({ media: { direction: 'sendonly' } });
    await untilLevel(agent, CUSTOMER_HZ, { below: -60 });
    await untilLevel(customer, AGENT_HZ, { below: -40 });
    const music = levelDbov(customer.received().pcm.subarray(-SAMPLES_PER_S / 4));
    expect(music).toBeGreaterThan(-45);
    expect(music).toBeLessThan(-15);
    expect((await control('resume', { leg: 'customer' })).status).toBe(200);
    await customer.log.until('reinvite', ({ media }) => media.direction === 'sendrecv');
    await untilLevel(customer, AGENT_HZ, { above: -20 });
    await untilLevel(agent, CUSTOMER_HZ, { above: -20 });
    agent.hangup();
    const events = await platform.ended(callId);
    expect(events.map(({ event, leg }) => `${event} ${leg}`)).toEqual(
      expect.arrayContaining(['call.held customer', 'call.resumed customer']),
    );
    expect(customer.received().continuity.foreign).toBe(0);
  });

  it('pauses the recording, which keeps its length', async () => {
    const { agent, callId, control } = await talk({ record: true });
    await platform.until(callId, 'recording.started');
    await untilLevel(agent, CUSTOMER_HZ, { above: -20 });
    expect((await control('recording/pause')).status).toBe(200);
    await nextLevel(agent, CUSTOMER_HZ);
    await nextLevel(agent, CUSTOMER_HZ);
    expect((await control('recording/resume')).status).toBe(200);
    await nextLevel(agent, CUSTOMER_HZ);
    agent.hangup();
    const events = await platform.ended(callId);
    const at = (name: string) => Date.parse(events.find(({ event }) => event === name)!.at);
    const recording = await platform.recordingOf(callId);
    const startedAt = at('recording.started');
    const sampleAt = (time: number) => Math.round(((time - startedAt) / 1000) * SAMPLES_PER_S);
    const quarter = SAMPLES_PER_S / 4;
    for (const [channel, frequencyHz] of [
      [recording.left, AGENT_HZ],
      [recording.right, CUSTOMER_HZ],
    ] as const) {
      const middle = (sampleAt(at('recording.paused')) + sampleAt(at('recording.resumed'))) / 2;
      expect(toneLevelDbov(channel.subarray(middle - quarter, middle + quarter), frequencyHz)).toBeLessThan(-60);
      // The agent is silent while its BYE travels.
      const lastQuarters = [4, 3, 2, 1].map((i) => channel.subarray(channel.length - i * quarter).subarray(0, quarter));
      expect(Math.max(...lastQuarters.map((part) => toneLevelDbov(part, frequencyHz)))).toBeGreaterThan(-20);
    }
    const talkMs = at('call.completed') - startedAt;
    expect(Math.abs(recording.durationMs - talkMs)).toBeLessThan(1000);
  });

  it('rejects controls of a missing recording and of an ended call', async () => {
    const { agent, callId, control } = await talk();
    expect(await control('recording/pause')).toMatchObject({ status: 404, body: { code: 'RECORDING_UNAVAILABLE' } });
    agent.hangup();
    await platform.ended(callId);
    expect(await control('mute', { leg: 'agent' })).toMatchObject({ status: 409, body: { code: 'CALL_NOT_LIVE' } });
  });
});
