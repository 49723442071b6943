import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Api, ApiError, type CallEvent } from '../../bin/cli/api-client.ts';
import { eventLines } from '../../bin/cli/event-lines.ts';
import { followCall } from '../../bin/cli/follow-call.ts';
import { openTerminal } from '../../bin/cli/terminal.ts';
import { partial } from '../partial.ts';
import { startTandem, startTandemProcess, TestHost } from './command-line.ts';

const host = new TestHost();
const terminal = openTerminal(host, { json: true });

/** A server that plays one script per opened stream. */
function serverOf(streams: readonly (readonly (CallEvent | Error)[])[]) {
  const asked: number[] = [];
  let isDone = false;
  const api = partial<Api>({
    url: 'http://127.0.0.1',
    get: async <T>() => ({ call: { call_done: isDone } }) as T,
    async *events(_callId, { afterSequence = 0 } = {}) {
      for (const step of streams[asked.push(afterSequence) - 1] ?? []) {
        if (step instanceof Error) throw step;
        isDone = step.state === 'completed';
        yield step;
      }
    },
  });
  return { api, asked };
}

function event(sequence: number, name: string, state: string): CallEvent {
  const at = '2026-11-21T10:00:00.000Z';
  return {
    sequence,
    event: name,
    state,
    at,
    leg: null,
    sip_status: null,
    hangup_cause: null,
    detail: null,
    data: null,
    transcript: null,
  };
}

const INITIATED = event(1, 'call.initiated', 'initiated');
const BRIDGED = event(2, 'call.bridged', 'bridged');
const COMPLETED = event(3, 'call.completed', 'completed');

describe('followCall', () => {
  it('resumes after the last event when the stream breaks, the server restarts or the stream closes', async () => {
    const { api, asked } = serverOf([
      [INITIATED, new TypeError('terminated')],
      [new ApiError('UNREACHABLE', 'no server')],
      [BRIDGED],
      [COMPLETED],
    ]);
    const { events, left } = await followCall(api, { callId: 'call_1', terminal, host });
    expect(events).toEqual([INITIATED, BRIDGED, COMPLETED]);
    expect(asked).toEqual([0, 1, 1, 2]);
    expect(left).toBe(false);
  });

  it('fails when the server does not know the call or the key', async () => {
    const { api, asked } = serverOf([[new ApiError('UNAUTHORIZED', 'no such key', { status: 401 })]]);
    await expect(followCall(api, { callId: 'call_1', terminal, host })).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    expect(asked).toEqual([0]);
  });

  it('leaves no signal handlers', async () => {
    await followCall(serverOf([[COMPLETED]]).api, { callId: 'call_1', terminal, host });
    expect(host.eventNames()).toEqual([]);
  });
});

/** A server whose calls never end. */
async function serveEndlessCalls() {
  const askedToHangUp = Promise.withResolvers<void>();
  const streamClosed = Promise.withResolvers<void>();
  const call = { call_id: 'call_1', reference_id: 'r', agent_number: '+1', customer_number: '+2', state: 'bridged' };
  const server = createServer((request, response) => {
    if (request.method === 'POST' && request.url === '/dialer/click2call/call_1/hangup') askedToHangUp.resolve();
    if (!request.url?.endsWith('/stream')) return response.end(JSON.stringify({ success: true, data: { call } }));
    return response
      .once('close', streamClosed.resolve)
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write(`data: ${JSON.stringify(BRIDGED)}\n\n`);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close().closeAllConnections());
  await once(server, 'listening');
  const env = {
    TANDEM_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    TANDEM_API_KEY: 'sk_of_the_follow_test_0123',
  };
  return { env, askedToHangUp: askedToHangUp.promise, streamClosed: streamClosed.promise };
}

describe('tandem call --follow', () => {
  it('requests a hang-up on the first Ctrl-C, and exits on the second', async () => {
    const { env, askedToHangUp } = await serveEndlessCalls();
    const command = startTandemProcess(['call', '+1', '+2', '--follow'], { env });
    await command.untilPrinted('call.bridged');
    command.interrupt();
    await Promise.all([command.untilPrinted('Ctrl-C again leaves'), askedToHangUp]);
    command.interrupt();
    const { exitCode, stderr } = await command.ended;
    expect(exitCode).toBe(1);
    expect(stderr).toContain('tandem: You left; the call is bridged.');
  });

  it('closes the stream when the user leaves', async () => {
    const { env, streamClosed } = await serveEndlessCalls();
    const command = startTandem(['call', 'status', 'call_1', '--follow'], { env });
    await command.untilPrinted('call.bridged');
    command.interrupt();
    expect((await command.ended).exitCode).toBe(1);
    await streamClosed;
  });
});

it('event lines contain the transcript without control characters', () => {
  const lineOf = eventLines(terminal);
  const said = { text: 'hello \u001b[31mworld\n', start: 1, end: 2, confidence: null };
  const final = { ...event(4, 'transcript.final', 'bridged'), leg: 'customer', transcript: said };
  expect(lineOf(final)).toBe('  0.00 s  bridged    transcript.final       customer, “hello  [31mworld ”');
});

it('event lines contain what a phone said about its failure without control characters', () => {
  const failed = {
    ...event(4, 'agent.failed', 'failed'),
    leg: 'agent',
    detail: 'Busy \u001b[2J',
    data: { by: 'a\rb' },
  };
  expect(eventLines(terminal)(failed)).toBe('  0.00 s  failed     agent.failed           agent, Busy  [2J, a b');
});

it('event lines keep their columns for any event', () => {
  const lineOf = eventLines(terminal);
  const names = ['agent.ringing', 'announcement.started', 'announcement.finished', 'transcript.final'];
  const lines = names.map((name, index) => lineOf({ ...event(index, name, 'initiated'), leg: 'agent' }));
  expect(new Set(lines.map((line) => line.lastIndexOf('agent'))).size).toBe(1);
});
