import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import type { PublicCall, PublicLeg, PublicTranscript } from '../../../actors/call-view.ts';
import type { PublicSipTrace } from '../../../http/schemas/sip-message.ts';
import { sipLadder } from '../../../http/sip-ladder.ts';
import { API_OPTIONS, openApi } from '../api-access.ts';
import { ApiError, type CallEvent } from '../api-client.ts';
import { type Command, CommandError, defineAction, notWritten, type Outcome, UsageError } from '../command.ts';
import { spoken } from '../event-lines.ts';
import { followCall } from '../follow-call.ts';
import { pathIn } from '../host.ts';
import { objectOf, switchOf } from '../option-values.ts';
import { didYouMean } from '../suggestion.ts';
import { fields, table } from '../terminal.ts';
import { deleteCall } from './privacy.ts';

const PATH = '/dialer/click2call';

const place = defineAction({
  summary: 'Place a call: ring the agent, then the customer, and bridge them.',
  parameters: [
    { name: 'AGENT', about: 'agent, rung first: a number that NUMBER_PLAN allows, or browser or browser:USER_ID' },
    { name: 'CUSTOMER', about: 'customer, rung once the agent has answered' },
  ],
  options: {
    did: { value: 'NUMBER', about: 'caller ID on both legs (default: the saved one of the trunk)' },
    trunk: { value: 'ID', about: 'trunk (default: the active one)' },
    record: { about: 'record both sides' },
    beep: {
      value: 'on|off',
      about: 'play a tone to both when the recording starts (default: as the workspace is set)',
    },
    transcribe: { about: 'transcribe both parties; --follow prints the transcript live' },
    'machine-detection': {
      value: 'continue|hangup',
      about: 'detect answering machines, and go on or hang up when one answers the customer number',
    },
    announce: { value: 'TEXT', about: 'played to the agent on answering, before the customer is rung' },
    whisper: { value: 'TEXT', about: 'played to the agent alone when the parties are bridged' },
    voice: { value: 'ID', about: 'voice of both (default: en-us)' },
    reference: { value: 'TEXT', about: 'idempotency key: dialed once (default: a new one)' },
    'agent-ring-timeout': { value: 'SECONDS', about: '5 to 60 (default 30)' },
    'customer-ring-timeout': { value: 'SECONDS', about: '5 to 60 (default 45)' },
    'max-duration': { value: 'SECONDS', about: 'longest talk, 30 to 7200 (default 3600)' },
    'callback-url': { value: 'URL', about: 'receives a signed callback when the call ends; needs --callback-secret' },
    'callback-secret': { value: 'TEXT', about: 'key that signs callbacks, 16 to 256 characters' },
    metadata: { value: 'JSON', about: 'object returned with the call and in callbacks' },
    follow: { about: 'print events until the call ends; Ctrl-C hangs up, twice exits' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [agent = '', customer = ''], terminal }) {
    const endpoint = endpointOf(agent);
    if (endpoint.type === 'phone' && !/\d/.test(agent)) {
      const actions = Object.keys(callCommand.actions ?? {});
      throw new UsageError(
        `${JSON.stringify(agent)} is not a phone number${didYouMean(agent, actions)} (see tandem call --help)`,
      );
    }
    const reference = values.reference ?? `cli-${randomUUID()}`;
    const body = {
      ...(endpoint.type === 'phone' ? { agent_number: agent } : { agent_endpoint: endpoint }),
      customer_number: customer,
      did: values.did,
      outbound_trunk_id: values.trunk,
      reference_id: reference,
      agent_ring_timeout: secondsOf('--agent-ring-timeout', values['agent-ring-timeout']),
      customer_ring_timeout: secondsOf('--customer-ring-timeout', values['customer-ring-timeout']),
      max_duration: secondsOf('--max-duration', values['max-duration']),
      callback_url: values['callback-url'],
      callback_secret: values['callback-secret'],
      record: values.record,
      recording_beep: switchOf('--beep', values.beep),
      transcribe: values.transcribe,
      machine_detection: machineDetectionOf(values['machine-detection']),
      announce: values.announce,
      whisper: values.whisper,
      voice_id: values.voice,
      metadata: objectOf('--metadata', { text: values.metadata, example: '{"order":1042}' }),
    };
    const api = openApi(host, values);
    const placed = await api
      .post<{ placed: boolean; replayed: boolean; call: PublicCall }>(PATH, body)
      .catch((error: unknown) => {
        throw mayHaveArrived(error) ? perhapsPlaced(error, reference) : error;
      });
    const { call, replayed } = placed;
    if (!values.follow) {
      const intro = replayed ? 'This reference is bound to a live call; nothing was dialed.\n' : '';
      return { data: placed, text: `${intro}${describe(call)}` };
    }
    terminal.line(
      `Call ${call.call_id}, reference ${call.reference_id}${replayed ? ' (already live; not dialed again)' : ''}`,
    );
    const { final, events, left } = await followCall(api, { callId: call.call_id, terminal, host });
    const outcome = outcomeOfFollowing(final, { events, left });
    return { ...outcome, data: { ...placed, call: final, events } };
  },
});

/** Whether the server, or one behind a proxy, may have received a request that it did not answer. */
function mayHaveArrived(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  if (error.code === 'UNREACHABLE') return LOST_AFTER_SENDING.has((error.cause as NestedCode).cause?.code ?? '');
  return error.code === 'BROKEN_OFF' || (error.code === 'UNEXPECTED_ANSWER' && error.status! >= 500);
}

type NestedCode = { cause?: { code?: string } };
const LOST_AFTER_SENDING = new Set(['UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT']);

function perhapsPlaced(cause: ApiError, reference: string): CommandError {
  const message =
    `the call may have been placed, but the answer was lost. See it with: tandem call status ${reference}. ` +
    `To try again without dialing twice, add: --reference ${reference}`;
  return new CommandError(cause.code, message, { cause });
}

const pathOf = (id: string) => `${PATH}/${encodeURIComponent(id)}`;

const ID = { name: 'ID', about: 'call_id or reference_id' };
const LEG = { name: 'LEG', about: 'agent, customer or a leg_id' };

const status = defineAction({
  summary: 'Show a call.',
  parameters: [ID],
  options: { follow: { about: 'print events until the call ends; Ctrl-C exits' }, ...API_OPTIONS },
  async run({ host, values, arguments: [id = ''], terminal }) {
    const api = openApi(host, values);
    const { call } = await api.get<{ call: PublicCall }>(`${pathOf(id)}?refresh=1`);
    if (!values.follow) return { data: { call }, text: describe(call) };
    const { final, events, left } = await followCall(api, {
      ...{ callId: call.call_id, terminal, host },
      hangUpOnInterrupt: false,
    });
    return outcomeOfFollowing(final, { events, left });
  },
});

const hangup = defineAction({
  summary: 'Hang up a live call. Does nothing to a finished one.',
  parameters: [ID],
  options: API_OPTIONS,
  async run({ host, values, arguments: [id = ''] }) {
    const { call } = await openApi(host, values).post<{ call: PublicCall }>(`${pathOf(id)}/hangup`);
    return { data: { call }, text: describe(call) };
  },
});

const mute = controlOf({ path: 'mute', summary: 'Make a leg inaudible to the other party.', done: 'is muted' });
const unmute = controlOf({ path: 'unmute', summary: 'Make a muted leg audible again.', done: 'is audible again' });

const resume = controlOf({ path: 'resume', summary: 'Take a leg off hold.', done: 'is connected again' });

const hold = defineAction({
  summary: 'Put a leg on hold.',
  parameters: [ID, LEG],
  options: { silent: { about: 'silence in place of music' }, ...API_OPTIONS },
  async run({ host, values, arguments: [id = '', leg = ''] }) {
    const body = { leg, music: values.silent !== true };
    const data = await openApi(host, values).post<{ call: PublicCall }>(`${pathOf(id)}/hold`, body);
    return { data, text: `The ${leg} is on hold.` };
  },
});

function controlOf({ path, summary, done }: { path: string; summary: string; done: string }) {
  return defineAction({
    summary,
    parameters: [ID, LEG],
    options: API_OPTIONS,
    async run({ host, values, arguments: [id = '', leg = ''] }) {
      const data = await openApi(host, values).post<{ call: PublicCall }>(`${pathOf(id)}/${path}`, {
        leg,
      });
      return { data, text: `The ${leg} ${done}.` };
    },
  });
}

const dtmf = defineAction({
  summary: 'Press keys on a leg.',
  parameters: [ID, LEG, { name: 'DIGITS', about: '0-9, *, #, A-D; w waits half a second, W one second' }],
  options: { duration: { value: 'MS', about: 'how long each key is held (default 160)' }, ...API_OPTIONS },
  async run({ host, values, arguments: [id = '', leg = '', digits = ''] }) {
    const durationMs = values.duration === undefined ? undefined : Number(values.duration);
    if (durationMs !== undefined && !Number.isInteger(durationMs))
      throw new UsageError('--duration takes milliseconds');
    const data = await openApi(host, values).post<{ call: PublicCall }>(`${pathOf(id)}/dtmf`, {
      leg,
      digits,
      duration_ms: durationMs,
    });
    return { data, text: `The digits were sent to the ${leg}.` };
  },
});

const play = defineAction({
  summary: 'Play a text or an audio file to a leg of a live call.',
  parameters: [ID, { name: 'LEG', about: 'agent, customer, a leg_id, or both', optional: true }],
  options: {
    text: { value: 'TEXT', about: 'text to speak, plain or SSML' },
    audio: { value: 'URL', about: 'https URL of an audio file, in place of --text' },
    voice: { value: 'ID', about: 'voice of --text (default: en-us)' },
    loop: { about: 'repeat it until it is stopped' },
    stop: { value: 'PLAYBACK', about: 'stop a sound that is playing; takes no LEG' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [id = '', leg = ''] }) {
    const path = `${pathOf(id)}/play`;
    const api = openApi(host, values);
    if (values.stop !== undefined) {
      const data = await api.delete<{ call: PublicCall }>(`${path}/${encodeURIComponent(values.stop)}`);
      return { data, text: 'The sound is stopped.' };
    }
    const { text, audio: url, voice, loop } = values;
    if (leg === '') throw new UsageError('name a leg: agent, customer, a leg_id, or both');
    if ((text === undefined) === (url === undefined)) throw new UsageError('give either --text or --audio');
    const data = await api.post<{ playback_id: string }>(path, { leg, text, url, voice_id: voice, loop });
    return { data, text: `Playing: ${data.playback_id}` };
  },
});

const add = defineAction({
  summary: 'Dial one more party, who joins the talk on answering.',
  parameters: [ID, { name: 'NUMBER', about: 'number to dial, or browser or browser:USER_ID' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [id = '', number = ''] }) {
    const body = { endpoint: endpointOf(number) };
    const data = await openApi(host, values).post<{ leg: PublicLeg }>(`${pathOf(id)}/legs`, body);
    return { data, text: `The party is being dialed: ${data.leg.leg_id}` };
  },
});

const remove = defineAction({
  summary: 'Hang up a party that was added.',
  parameters: [ID, { name: 'LEG', about: 'leg_id of the party' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [id = '', leg = ''] }) {
    const path = `${pathOf(id)}/legs/${encodeURIComponent(leg)}`;
    return { data: await openApi(host, values).delete<{ call: PublicCall }>(path), text: 'The party is gone.' };
  },
});

const transfer = defineAction({
  summary: 'Replace the agent or the customer of a live call by another party.',
  parameters: [ID, { name: 'NUMBER', about: 'number to dial, or browser or browser:USER_ID', optional: true }],
  options: {
    leg: { value: 'LEG', about: 'leg to replace: agent (default), customer or a leg_id' },
    attended: { about: 'the leg talks with the target first, until --complete or --cancel' },
    complete: { about: 'complete an attended transfer; takes no NUMBER' },
    cancel: { about: 'hang up the target; takes no NUMBER' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [id = '', number = ''] }) {
    const path = `${pathOf(id)}/transfer`;
    const api = openApi(host, values);
    if (values.complete) {
      return { data: await api.post<{ call: PublicCall }>(`${path}/complete`), text: 'The transfer is complete.' };
    }
    if (values.cancel) return { data: await api.delete<{ call: PublicCall }>(path), text: 'The target is gone.' };
    if (number === '') throw new UsageError('name the number to transfer to, or give --complete or --cancel');
    const mode = values.attended ? 'attended' : 'blind';
    const data = await api.post<{ leg: PublicLeg }>(path, { endpoint: endpointOf(number), leg: values.leg, mode });
    return { data, text: `The target is being dialed: ${data.leg.leg_id}` };
  },
});

const supervise = defineAction({
  summary: 'Let a supervisor listen to a live call, whisper to the agent or barge in. Admins and owners only.',
  parameters: [
    ID,
    { name: 'NUMBER|SUPERVISION', about: 'number to dial, browser or browser:USER_ID, or the id of a supervision' },
  ],
  options: {
    mode: { value: 'MODE', about: 'listen (default), whisper or barge' },
    end: { about: 'end the supervision' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [id = '', who = ''] }) {
    const path = `${pathOf(id)}/supervise`;
    const api = openApi(host, values);
    if (values.end) {
      const data = await api.delete<{ call: PublicCall }>(`${path}/${encodeURIComponent(who)}`);
      return { data, text: 'The supervisor is gone.' };
    }
    const { mode = 'listen' } = values;
    const data = who.startsWith('leg_')
      ? await api.patch<Supervised>(`${path}/${encodeURIComponent(who)}`, { mode })
      : await api.post<Supervised>(path, { mode, endpoint: endpointOf(who) });
    return { data, text: `Supervision ${data.supervision.id}: ${data.supervision.mode}` };
  },
});

interface Supervised {
  supervision: { id: string; mode: string };
}

const recording = defineAction({
  summary: 'Pause or resume the recording of a live call.',
  parameters: [ID, { name: 'pause|resume', about: 'pause records silence until resume' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [id = '', action = ''] }) {
    if (action !== 'pause' && action !== 'resume') throw new UsageError('name pause or resume');
    const path = `${pathOf(id)}/recording/${action}`;
    const data = await openApi(host, values).post<{ call: PublicCall }>(path);
    return { data, text: action === 'pause' ? 'The recording is paused.' : 'The recording goes on.' };
  },
});

const transcript = defineAction({
  summary: 'Show the transcript of a call placed with --transcribe.',
  parameters: [ID],
  options: API_OPTIONS,
  async run({ host, values, arguments: [id = ''] }) {
    const data = await openApi(host, values).get<PublicTranscript>(`${pathOf(id)}/transcript`);
    const rows = data.segments.map(({ start, leg, text }) => [`${start.toFixed(1)} s`, leg, spoken(text)]);
    if (data.status === 'none') return { data, text: 'The call has no transcript.' };
    const status = `The transcript is ${data.status}${data.error === null ? '' : `: ${data.error}`}.`;
    return { data, text: `${table(['FROM', 'LEG', 'SAID'], rows, 'Nothing was understood.')}\n${status}` };
  },
});

const ladder = defineAction({
  summary: 'Show the SIP messages of a call as a ladder. Admins and owners only.',
  parameters: [ID],
  options: { pcap: { value: 'FILE', about: 'write them to a capture file for Wireshark instead' }, ...API_OPTIONS },
  async run({ host, values, arguments: [id = ''] }) {
    if (values.pcap !== undefined) {
      const bytes = await openApi(host, values).file(`${pathOf(id)}/sip.pcapng`);
      const file = values.pcap;
      await writeFile(pathIn(host.cwd(), file), bytes).catch((cause: unknown) => {
        throw notWritten(file, cause);
      });
      return { data: { file, bytes: bytes.length }, text: `${file} is written.` };
    }
    const data = await openApi(host, values).get<PublicSipTrace>(`${pathOf(id)}/sip`);
    return { data, text: sipLadder(data).trimEnd() };
  },
});

const list = defineAction({
  summary: 'List calls of the workspace, newest first.',
  options: {
    state: { value: 'STATE', about: 'pending, initiated, bridged, completed, failed, rejected or unknown' },
    agent: { value: 'NUMBER', about: 'only calls of this agent' },
    customer: { value: 'NUMBER', about: 'only calls to this customer' },
    from: { value: 'TIME', about: 'placed at or after, ISO 8601' },
    to: { value: 'TIME', about: 'placed before, ISO 8601' },
    limit: { value: 'N', about: 'page size, 1 to 100 (default 20)' },
    page: { value: 'N', about: 'page number (default 1)' },
    ...API_OPTIONS,
  },
  async run({ host, values }) {
    const query = new URLSearchParams();
    const wanted = {
      state: values.state,
      agent_number: values.agent,
      customer_number: values.customer,
      from: values.from,
      to: values.to,
      limit: values.limit,
      page: values.page,
    };
    for (const [name, value] of Object.entries(wanted)) if (value !== undefined) query.set(name, value);
    const data = await openApi(host, values).get<{ calls: PublicCall[]; pagination: { page: number; pages: number } }>(
      `${PATH}?${query}`,
    );
    const rows = data.calls.map((call) => [
      call.created_at,
      call.call_id,
      call.agent_number,
      call.customer_number ?? 'unknown',
      call.state,
      call.hangup_cause,
      call.talk_seconds,
    ]);
    const headings = ['PLACED', 'CALL', 'AGENT', 'CUSTOMER', 'STATE', 'CAUSE', 'TALK S'];
    const { page, pages } = data.pagination;
    const more = page < pages ? `\nPage ${page} of ${pages}: --page ${page + 1} shows the next.` : '';
    return { data, text: table(headings, rows, 'There is no such call.') + more };
  },
});

export const callCommand: Command = {
  action: place,
  actions: {
    status,
    hangup,
    mute,
    unmute,
    hold,
    resume,
    dtmf,
    play,
    add,
    remove,
    transfer,
    supervise,
    recording,
    transcript,
    ladder,
    list,
    delete: deleteCall,
  },
  notes: 'With --follow, the exit code is 0 if the parties were bridged, else 1.',
};

/** A number, `browser` for the browser of the key's user, or `browser:42` for that of user 42. */
function endpointOf(text: string) {
  const [, , userId] = /^browser(:(\d{1,9}))?$/.exec(text) ?? [];
  if (userId !== undefined) return { type: 'webrtc', user_id: Number(userId) } as const;
  return text === 'browser' ? ({ type: 'webrtc' } as const) : ({ type: 'phone', number: text } as const);
}

/** A failed call is a negative result, not an error of the command line. */
function outcomeOfFollowing(call: PublicCall, { events, left }: { events: CallEvent[]; left: boolean }): Outcome {
  const data = { call, events };
  if (left) {
    const message = `You left; the call is ${call.state}. tandem call status ${call.call_id} shows what becomes of it.`;
    return { data, failure: { code: 'LEFT', message } };
  }
  if (call.state === 'completed') return { data, text: describe(call) };
  const message = `The call ended as ${call.state}: ${call.hangup_cause ?? call.error ?? 'no cause is known'}.`;
  return { data, text: describe(call), failure: { code: call.error ?? call.hangup_cause ?? 'CALL_FAILED', message } };
}

function describe(call: PublicCall): string {
  const failure = [call.leg, call.error, call.error_detail].filter((part) => part !== null).join(', ');
  return fields([
    ['call', call.call_id],
    ['reference', call.reference_id],
    ['agent', call.agent_number ?? 'browser'],
    ['customer', call.customer_number ?? 'unknown'],
    ['did', call.did],
    ['state', call.state],
    ...(call.hangup_cause === null ? [] : [['cause', call.hangup_cause] as const]),
    ...(failure === '' ? [] : [[call.state === 'completed' ? 'ended' : 'failed', failure] as const]),
    ...(call.talk_seconds === null ? [] : [['talk', `${call.talk_seconds} s`] as const]),
    ...(call.cost_usd === null ? [] : [['cost', `${call.cost_usd} USD`] as const]),
    ...call.legs
      .map(({ leg_id, role, state }) => [role, `${state}${leg_id === role ? '' : ` (${leg_id})`}`] as const)
      .slice(2),
    ...(call.legs_cost_usd === null ? [] : [['legs', `${call.legs_cost_usd} USD`] as const]),
    ...(call.speech_cost_usd === null ? [] : [['told', `${call.speech_cost_usd} USD`] as const]),
    ...(call.record_requested ? [['recording', call.recording_status] as const] : []),
    ...(call.transcribe_requested ? [['transcript', `tandem call transcript ${call.call_id}`] as const] : []),
  ]);
}

function machineDetectionOf(onMachine: string | undefined): object | undefined {
  if (onMachine === undefined) return undefined;
  if (onMachine !== 'continue' && onMachine !== 'hangup') {
    throw new UsageError('--machine-detection takes continue or hangup');
  }
  return { mode: 'enable', on_machine: onMachine };
}

function secondsOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(`${option} takes seconds, not ${JSON.stringify(text)}`);
  return Number(text);
}
