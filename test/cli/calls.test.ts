import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import type { CallEvent } from '../../bin/cli/api-client.ts';
import type { CallSegment } from '../../machines/events.ts';
import { concludeTranscript, openTranscript } from '../../storage/queries/transcripts.ts';
import { AGENT, CUSTOMER, DID, type Platform, SECRET, startPlatform } from '../calls/platform.ts';
import { untilTruthy } from '../eventually.ts';
import { beep } from '../media/answering/answers.ts';
import { readPcapng } from '../runtime/pcapng-reader.ts';
import { NOW } from '../storage/seed.ts';
import { startBreakingServer } from './breaking-server.ts';
import {
  type CommandLineOptions,
  serverFolder,
  startTandem,
  startTandemProcess,
  tandem,
  tandemProcess,
} from './command-line.ts';

let platform: Platform;
let options: CommandLineOptions;
let folder: Awaited<ReturnType<typeof serverFolder>>;

beforeAll(async () => {
  platform = await startPlatform();
  folder = await serverFolder();
  const env = { TANDEM_URL: platform.tandem.url, TANDEM_API_KEY: platform.tandem.mintedApiKey ?? '' };
  options = { cwd: folder.path, env };
});

afterAll(async () => {
  await platform[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const run = (...argv: string[]) => tandem(argv, options);

describe('tandem call', () => {
  it('--follow prints each event until the call completes, and exits with 0', async () => {
    const { customer } = await platform.parties();
    const command = startTandem(
      ['call', AGENT, CUSTOMER, '--did', DID, '--record', '--reference', 'cli-follow', '--max-duration', '600'].concat(
        ['--metadata', '{"ticket":4711}', '--callback-url', platform.receiver.url, '--callback-secret', SECRET],
        ['--follow'],
      ),
      options,
    );
    await command.untilPrinted('call.bridged');
    await customer.untilReceived(({ packets }) => packets > 60);
    const { calls } = await listed('--state', 'bridged');
    expect(calls).toHaveLength(1);
    expect((await run('call', 'hangup', 'cli-follow')).exitCode).toBe(0);
    const { exitCode, stdout, stderr } = await command.ended;
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const events = stdout.split('\n').flatMap((line) => /^ +\d+\.\d\d s +\w+ +(\S+)/.exec(line)?.[1] ?? []);
    expect(events).toEqual(
      expect.arrayContaining(['call.initiated', 'agent.ringing', 'agent.answered', 'call.bridged', 'call.completed']),
    );
    expect(events.at(-1)).toBe('call.completed');
    expect(stdout).toMatch(/^cause +NORMAL_CLEARING$/m);
    const call = await platform.call('cli-follow');
    expect(call).toMatchObject({ did: DID, metadata: { ticket: 4711 }, record_requested: true, state: 'completed' });
    expect(await platform.receiver.callbackOf(call.call_id)).toMatchObject({ verified: { ok: true } });
  });

  it('mute, unmute, hold, resume, dtmf, play and recording control a live call', async () => {
    const { agent, customer } = await platform.parties();
    const { call_id: callId } = await platform.place({ record: true });
    await platform.until(callId, 'recording.started');
    expect((await run('call', 'mute', callId, 'agent')).stdout).toBe('The agent is muted.\n');
    expect((await run('call', 'unmute', callId, 'agent')).stdout).toBe('The agent is audible again.\n');
    expect((await run('call', 'hold', callId, 'customer', '--silent')).stdout).toBe('The customer is on hold.\n');
    expect((await run('call', 'resume', callId, 'customer')).stdout).toBe('The customer is connected again.\n');
    expect((await run('call', 'dtmf', callId, 'customer', '12#', '--duration', '100')).stdout).toBe(
      'The digits were sent to the customer.\n',
    );
    await customer.untilReceived(({ digits }) => digits === '12#');
    const { stdout: playing } = await run('call', 'play', callId, 'both', '--text', 'Hold on.', '--loop');
    const playback = /^Playing: (play_\S+)\n$/.exec(playing)![1]!;
    expect((await run('call', 'play', callId, '--stop', playback)).stdout).toBe('The sound is stopped.\n');
    expect(await run('call', 'play', callId, 'both')).toMatchObject({ exitCode: 2 });
    expect((await run('call', 'recording', callId, 'pause')).stdout).toBe('The recording is paused.\n');
    expect((await run('call', 'recording', callId, 'resume')).stdout).toBe('The recording goes on.\n');
    expect(await run('call', 'mute', callId, 'nobody')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('LEG_NOT_FOUND'),
    });
    agent.hangup();
    await platform.ended(callId);
  });

  it('add, remove and supervise change the legs of a live call', async () => {
    const third = '+919833333333';
    await platform.phone(third);
    const { agent } = await platform.parties();
    const { call_id: callId } = await platform.place();
    await platform.until(callId, 'call.bridged');
    const legId = /leg_\S+/.exec((await run('call', 'add', callId, third)).stdout)![0];
    await platform.until(callId, 'leg.joined');
    expect((await run('call', 'status', callId)).stdout).toContain(`answered (${legId})`);
    expect((await run('call', 'remove', callId, legId)).stdout).toBe('The party is gone.\n');
    const supervision = /leg_[^:]+/.exec((await run('call', 'supervise', callId, third)).stdout)![0];
    await platform.until(callId, 'supervision.started');
    expect((await run('call', 'supervise', callId, supervision, '--mode', 'barge')).stdout).toContain(': barge');
    expect((await run('call', 'supervise', callId, supervision, '--end')).stdout).toBe('The supervisor is gone.\n');
    agent.hangup();
    await platform.ended(callId);
  });

  it('transfer replaces the agent, blind or attended', async () => {
    const third = '+919833333333';
    await platform.phone(third);
    await platform.parties();
    const { call_id: callId } = await platform.place();
    await platform.until(callId, 'call.bridged');
    expect((await run('call', 'transfer', callId)).stderr).toContain('name the number to transfer to');
    expect((await run('call', 'transfer', callId, third, '--attended')).stdout).toContain('is being dialed: leg_');
    const cancelled = await platform.until(callId, 'leg.joined');
    expect((await run('call', 'transfer', callId, '--cancel')).stdout).toBe('The target is gone.\n');
    expect((await run('call', 'transfer', callId, third, '--attended')).stdout).toContain('is being dialed: leg_');
    await platform.until(callId, 'leg.joined', ({ sequence }) => sequence > cancelled.sequence);
    expect((await run('call', 'transfer', callId, '--complete')).stdout).toBe('The transfer is complete.\n');
    await run('call', 'hangup', callId);
    await platform.ended(callId);
  });

  it('ladder prints the SIP messages of a call', async () => {
    await platform.parties({ customer: { answer: { status: 486 } } });
    const { call_id: callId } = await platform.place();
    await platform.ended(callId);
    const ladder = async () => (await run('call', 'ladder', callId)).stdout;
    await untilTruthy(async () => (await ladder()).includes('486 Busy Here'));
    const lines = (await ladder()).split('\n');
    expect(lines[0]).toMatch(`Call ${callId}: `);
    expect(lines[2]?.trim().split(/\s+/)).toEqual(['agent', 'Tandem', 'customer']);
    expect(lines.find((line) => line.includes('INVITE'))).toMatch(/^ +\+0\.000 +\|?<-+ INVITE \(SDP\) -+\|/);
    expect(lines.find((line) => line.includes(' 486 '))).toMatch(/\|<-+ 486 Busy Here -+\|/);
    const file = join(folder.path, 'call.pcapng');
    expect((await run('call', 'ladder', callId, '--pcap', file)).stdout).toBe(`${file} is written.\n`);
    expect(readPcapng(await readFile(file)).packets.length).toBeGreaterThan(8);
    const { stdout } = await run('call', 'ladder', callId, '--json');
    expect(JSON.parse(stdout).data).toMatchObject({ call_id: callId, truncated: false });
  });

  it('transcript prints the segments in the order of speech, and the final status', async () => {
    const { call_id: callId } = await platform.call('cli-follow');
    expect((await run('call', 'transcript', callId)).stdout).toBe('The call has no transcript.\n');
    const times = { language: 'en', confidence: null, words: [] };
    const late: CallSegment[] = [
      { ...times, leg: 'customer', utteranceId: 1, text: 'hello\u001b[2J', startMs: 2_310, endMs: 2_900 },
      { ...times, leg: 'agent', utteranceId: 1, text: 'good morning', startMs: 400, endMs: 1_000 },
    ];
    await openTranscript(platform.sql, { callId, now: NOW });
    await concludeTranscript(platform.sql, { callId, late, error: 'OVERLOADED', now: NOW });
    const { stdout } = await run('call', 'transcript', 'cli-follow');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['FROM', 'LEG', 'SAID'],
      ['0.4 s', 'agent', '“good morning”'],
      // Control characters from an engine must not reach the terminal.
      ['2.3 s', 'customer', '“hello [2J”'],
      ['The transcript is failed: OVERLOADED.'],
      [''],
    ]);
  });

  it('--follow --json prints one document with the call and its events', async () => {
    const { customer } = await platform.parties({ customer: { answer: 'manual' } });
    const command = startTandem(['call', AGENT, CUSTOMER, '--reference', 'cli-json', '--follow', '--json'], options);
    await customer.until('ringing');
    await run('call', 'hangup', 'cli-json');
    const { exitCode, document, stderr } = await command.ended;
    const { call, events } = document.data as { call: PublicCall; events: CallEvent[] };
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tandem: .*\n$/);
    expect(document).toMatchObject({ success: false, code: expect.any(String), message: expect.any(String) });
    expect(call).toMatchObject({ reference_id: 'cli-json', call_done: true });
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)?.event).toBe(call.terminal_event);
  });

  it('hangs up on the first Ctrl-C while following, and continues to the end', async () => {
    await platform.parties();
    const command = startTandemProcess(['call', AGENT, CUSTOMER, '--reference', 'cli-ctrl-c', '--follow'], options);
    await command.untilPrinted('call.bridged');
    command.interrupt();
    const { exitCode, stdout } = await command.ended;
    expect(exitCode).toBe(0);
    expect(stdout).toContain('Hanging up; Ctrl-C again leaves.');
    expect(stdout).toContain('call.completed');
    expect(await platform.call('cli-ctrl-c')).toMatchObject({ state: 'completed' });
  });

  it('status --follow stops on Ctrl-C without ending the call', async () => {
    await platform.parties();
    expect((await run('call', AGENT, CUSTOMER, '--reference', 'cli-leave')).stdout).toMatch(/^state +initiated$/m);
    const command = startTandem(['call', 'status', 'cli-leave', '--follow'], options);
    await command.untilPrinted('call.bridged');
    command.interrupt();
    const { exitCode, stderr } = await command.ended;
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tandem: You left; the call is bridged\..*\n$/);
    expect(await platform.call('cli-leave')).toMatchObject({ state: 'bridged' });
    const again = await run('call', AGENT, CUSTOMER, '--reference', 'cli-leave');
    expect(again.stdout).toContain('nothing was dialed');
    await run('call', 'hangup', 'cli-leave');
    await platform.ended((await platform.call('cli-leave')).call_id);
  });

  it('prints one call, and lists calls newest first, in pages', async () => {
    const status = await run('call', 'status', 'cli-follow', '--json');
    expect(status).toMatchObject({ exitCode: 0, stderr: '' });
    expect(status.document).toMatchObject({ success: true, data: { call: { reference_id: 'cli-follow' } } });
    const first = await listed('--limit', '1');
    expect(first.calls.map(({ reference_id }) => reference_id)).toEqual(['cli-leave']);
    const text = (await run('call', 'list', '--limit', '1')).stdout;
    expect(text).toMatch(/^PLACED +CALL +AGENT/);
    expect(text).toContain('--page 2 shows the next');
    expect((await run('call', 'list', '--state', 'unknown')).stdout).toBe('There is no such call.\n');
  });

  it('--machine-detection hangs up on a machine, and prints that', async () => {
    const samples = beep(1000, 600);
    await platform.parties({ customer: { audio: { kind: 'samples', samples } } });
    const { exitCode, stdout } = await run('call', AGENT, CUSTOMER, '--machine-detection', 'hangup', '--follow');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/machine\.detected +customer, beep, \d+$/m);
    expect(stdout).toMatch(/^ended +an answering machine answered$/m);
    const refused = await run('call', AGENT, CUSTOMER, '--machine-detection', 'yes');
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('--machine-detection takes continue or hangup');
  });

  it('rings a browser instead of a number, for a member', async () => {
    const { exitCode, document } = await run('call', 'browser:999999', CUSTOMER, '--json');
    expect(exitCode).toBe(1);
    expect(['MEMBER_NOT_FOUND', 'WEBRTC_NOT_AVAILABLE']).toContain(document.code);
  });

  it('prints an API error in one line with its code', async () => {
    const { exitCode, stderr, document } = await run('call', '12', CUSTOMER, '--json');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tandem: .*INVALID_NUMBER.*\n$/);
    expect(document).toEqual({
      success: false,
      code: 'INVALID_NUMBER',
      message: expect.stringContaining('agent_number'),
    });
    expect((await run('call', 'status', 'nothing')).stderr).toContain('CALL_NOT_FOUND');
  });

  it('reports a response that is cut off as a lost connection', async () => {
    await using server = await startBreakingServer('{"success":true,');
    const { exitCode, stderr } = await run('call', 'list', '--url', server.url);
    expect([exitCode, stderr]).toEqual([1, `tandem: the answer of ${server.url} was broken off: try again.\n`]);
  });

  it.each([
    { answer: '{"success":true,', code: 'BROKEN_OFF' },
    { answer: '', code: 'UNREACHABLE' },
  ])(
    'names the reference of a call whose answer $answer is lost, to look for it and not to dial twice',
    async ({ answer, code }) => {
      await using server = await startBreakingServer(answer);
      for (const given of [[], ['--reference', 'cli-lost']]) {
        const { exitCode, document } = await run('call', AGENT, CUSTOMER, ...given, '--json', '--url', server.url);
        const { reference_id: reference } = JSON.parse(server.bodies.at(-1)!) as { reference_id: string };
        const message =
          `the call may have been placed, but the answer was lost. See it with: tandem call status ${reference}. ` +
          `To try again without dialing twice, add: --reference ${reference}`;
        expect([exitCode, document.code, document.message]).toEqual([1, code, message]);
        expect(reference).toMatch(given[1] ?? /^cli-[\da-f-]{36}$/);
      }
      expect(server.bodies).toHaveLength(2);
    },
  );

  it('names the capture file that cannot be written', async () => {
    const { call_id: callId } = await platform.call('cli-follow');
    const { exitCode, stderr } = await run('call', 'ladder', callId, '--pcap', folder.path);
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/^tandem: \S+ cannot be written: EISDIR.*\n$/)]);
  });

  it('prefers server and key from options to those from the environment', async () => {
    const { tandem: server } = platform;
    const argv = ['call', 'list', '--json', '--url', `${server.url}/`, '--key', server.mintedApiKey ?? ''];
    const elsewhere = {
      ...options,
      env: { TANDEM_URL: 'http://127.0.0.1:9', TANDEM_API_KEY: 'sk_of_somebody_else_0123' },
    };
    expect((await tandem(argv, elsewhere)).exitCode).toBe(0);
    expect((await tandem(argv.slice(0, 5), elsewhere)).document).toMatchObject({ code: 'UNAUTHORIZED' });
  });
});

describe('tandem rules', () => {
  it('prints and changes the limits and the do-not-call list', async () => {
    const run = async (...argv: string[]) => (await tandem(['rules', ...argv, '--json'], options)).document;
    const set = ['set', '--daily-cap', '50', '--block', '+882,+979', '--limits', '+44:5', '--hours', '00:00-23:59'];
    expect(await run(...set, '--zone', 'Asia/Kolkata')).toMatchObject({
      data: {
        rules: {
          daily_spend_cap_usd: 50,
          blocked_prefixes: ['+882', '+979'],
          destination_limits: [{ prefix: '+44', calls_per_minute: 5 }],
          calling_hours: { time_zone: 'Asia/Kolkata', start: '00:00', end: '23:59' },
        },
      },
    });
    const { stdout } = await tandem(['rules', 'show'], options);
    expect(stdout).toMatch(/^hours +00:00 to 23:59, Asia\/Kolkata$/m);
    const off = ['set', '--daily-cap', 'off', '--block', '', '--limits', '', '--hours', 'off'];
    expect(await run(...off)).toMatchObject({ data: { rules: { daily_spend_cap_usd: null, calling_hours: null } } });
    expect(await run('block', '98123 40001,+919812340002')).toMatchObject({ data: { added: 2 } });
    expect((await tandem(['rules', 'do-not-call'], options)).stdout).toBe('+919812340001\n+919812340002\n');
    for (const number of ['+919812340001', '+919812340002']) {
      expect(await run('allow', number)).toMatchObject({ data: { removed: true } });
    }
    expect(await run('allow', '+919812340001')).toMatchObject({ code: 'NOT_ON_DO_NOT_CALL' });
  });

  it.each([
    [['set']],
    [['set', '--daily-cap', 'much']],
    [['set', '--limits', '+91']],
    [['set', '--hours', '9-21', '--zone', 'UTC']],
    [['set', '--hours', '09:00-21:00']],
    [['set', '--daily-cap', '50', '--zone', 'UTC']],
    [['set', '--hours', 'off', '--zone', 'UTC']],
  ])('rejects %j and prints the correct usage', async (argv) => {
    const { exitCode, stderr } = await tandem(['rules', ...argv], options);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('takes') });
  });
});

describe('tandem trunks', () => {
  it('adds, prints, changes and removes a trunk, and rents its numbers', async () => {
    const added = await tandemProcess(
      [
        'trunks',
        'add',
        'Second',
        'sip:carrier.example:5060',
        '--transport',
        'tcp',
        '--username',
        'me',
        '--rent',
      ].concat(
        ['--password-stdin', '--codecs', 'PCMA', '--channels', '3', '--prefixes', '+91,+4930', '--price', '0.0125'],
        ['--encryption', 'optional', '--health', 'none', '--health-interval', '60'],
        ['--numbers', '+911140000101,+911140000102', '--caller-id', '+911140000102', '--json'],
      ),
      { ...options, stdin: 'the password\n' },
    );
    expect(added, added.stderr).toMatchObject({ exitCode: 0, stderr: '' });
    const fields = {
      name: 'Second',
      transport: 'tcp',
      username: 'me',
      codecs: ['PCMA'],
      media_encryption: 'optional',
      channels: 3,
      health: { mode: 'none', interval_seconds: 60 },
      reachability: { state: 'unknown', since: null, reason: 'not_checked' },
      allowed_prefixes: ['+91', '+4930'],
      numbers: ['+911140000101', '+911140000102'],
      default_caller_id: '+911140000102',
      price_per_minute_usd: 0.0125,
    };
    expect(added.document).toMatchObject({ success: true, data: fields });
    expect(added.stdout).not.toContain('the password');
    const rented = await platform.sql`select 1 from numbers where e164 like '+9111400001%' and status = 'assigned'`;
    expect(rented).toHaveLength(2);

    const { id } = added.document.data as { id: string };
    expect((await run('trunks', 'show', id)).stdout).toMatch(/^price +0\.0125 USD a minute$/m);
    expect((await run('trunks', 'show', id)).stdout).toMatch(/^carrier +unknown \(not checked\)$/m);
    const changed = await run(
      'trunks',
      'set',
      'Second',
      '--status',
      'disabled',
      '--register',
      'yes',
      '--channels',
      '5',
      '--prefixes',
      '',
      '--json',
    );
    expect(changed.document.data).toMatchObject({
      ...fields,
      status: 'disabled',
      register: true,
      channels: 5,
      allowed_prefixes: [],
    });
    expect((await run('trunks', 'list')).stdout).toMatch(
      /Second +sip:carrier\.example:5060 +disabled +5 +2 +0\.0125 +unknown/,
    );

    expect(await run('trunks', 'remove', 'Second')).toMatchObject({
      exitCode: 0,
      stdout: 'Trunk Second is removed.\n',
    });
    expect(await run('trunks', 'show', 'Second', '--json')).toMatchObject({ exitCode: 1 });
    expect((await run('trunks', 'show', 'Second')).stderr).toContain('tandem trunks list shows all');
  });

  it('requires an id when two trunks share a name', async () => {
    for (const host of ['one', 'two']) await run('trunks', 'add', 'Twin', `sip:${host}.example`);
    const { exitCode, document } = await run('trunks', 'remove', 'Twin', '--json');
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ code: 'AMBIGUOUS_TRUNK' });
  });
});

async function listed(...argv: string[]): Promise<{ calls: PublicCall[] }> {
  return (await run('call', 'list', '--json', ...argv)).document.data;
}

describe('tandem call delete and tandem privacy erase', () => {
  it('delete permanently after a confirmation', async () => {
    const number = '+919810004711';
    const place = (reference: string) => platform.place({ customer_number: number, reference_id: reference });
    for (const reference of ['cli-delete', 'cli-erase']) {
      const { call_id } = await place(reference);
      await platform.ended(call_id);
    }
    expect(await run('call', 'delete', 'cli-delete')).toMatchObject({ exitCode: 2 });
    const deleted = await run('call', 'delete', 'cli-delete', '--yes');
    expect(deleted.stdout).toMatch(/^Call call_\S+ is deleted: 1 calls, \d+ events/);
    expect((await run('call', 'status', 'cli-delete', '--json')).document).toMatchObject({ code: 'CALL_NOT_FOUND' });
    expect(await run('privacy', 'erase', number)).toMatchObject({ exitCode: 2 });
    const { stdout } = await run('privacy', 'erase', number, '--yes', '--wait');
    expect(stdout).toMatch(/^status +completed$/m);
    expect(stdout).toMatch(/^number +\.\.\.4711$/m);
    const id = /^erasure +(\S+)$/m.exec(stdout)?.[1] ?? '';
    expect((await run('privacy', 'status', id)).stdout).toBe(stdout);
    expect((await run('call', 'status', 'cli-erase', '--json')).document).toMatchObject({ code: 'CALL_NOT_FOUND' });
  });
});
