import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PublicCall, PublicTranscript } from '../../actors/call-view.ts';
import { loadConfig } from '../../config.ts';
import { createLogger } from '../../logging.ts';
import { startTandem, type Tandem } from '../../main.ts';
import { readWav } from '../../media/wav.ts';
import { connect } from '../../storage/database.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { type Api, apiClient } from '../cli/api-client.ts';
import { spoken } from '../cli/event-lines.ts';
import type { Terminal } from '../cli/terminal.ts';
import { awaitWords, talkProgress } from './awaiting-words.ts';
import { type ReceivedCallback, startCallbackReceiver } from './callback-receiver.ts';
import { type Conversation, conversationOf, withFarewell } from './conversation.ts';
import { curlOf } from './curl.ts';
import { keepCalling } from './keep-calling.ts';
import { FOREIGN_LIKENESS, likenessOf, SAME_LIKENESS, wordsUnderstood } from './likeness.ts';
import { checkRemembered } from './remembered.ts';
import { openScreen, type Screen } from './screen.ts';
import { PROMPTS, type Prompts, spokenForDemo } from './spoken-by-platform.ts';
import { checkReception, NUMBERS, startTown, type Town } from './town.ts';

const CALLBACK_SECRET = 'demo-callback-secret-0123456789';
const DIDS = ['+911140000001', '+911140000002'];
const PRICE_PER_MINUTE_USD = 0.012;
/**
 * Share of words. The embedded recogniser is small and sometimes gets half of a sentence wrong. Unrelated sentences
 * share almost no words.
 */
const LEAST_UNDERSTOOD = 1 / 3;
/**
 * A recording keeps time, so packets that a busy machine delivers after its playout buffer leave gaps. They do not
 * affect what the parties hear.
 */
const LEAST_RECORDED_LIKENESS = 0.6;
const TOP_UP_NANO = 5_000_000_000n;
const BETWEEN_CALLS_MS = 3_000;
/** A demo that takes longer is stuck. It took 150 s under a load of 18 on two cores. */
const DEADLINE_MS = 300_000;

export interface DemoOptions {
  terminal: Terminal;
  /** Keeps server and phones running until a signal. */
  keep: boolean;
  /** The trunk and the phones require SRTP. */
  encrypt: boolean;
  sentences: number;
  /** Called with the result once everything is measured; with `keep` the demo then goes on. */
  onResult?: (result: DemoResult) => void;
}

export interface DemoResult {
  call: PublicCall;
  checks: readonly { ok: boolean; text: string }[];
  url: string;
  api_key: string;
  /** Login link for the console, valid once. Null without `keep`. */
  console_url: string | null;
}

/**
 * Runs the demo: starts everything embedded, calls two softphones over real SIP and RTP, bridges, records and
 * transcribes them, and prints each state and sentence. Resolves with the exit code: 0 if every check passed, 130 after
 * a signal.
 */
export async function runDemo(options: DemoOptions): Promise<number> {
  const stuck = setTimeout(() => {
    process.stderr.write(
      `\nThe demo is stuck after ${DEADLINE_MS / 1000} s. Run it again, and report it if it stays so.\n`,
    );
    process.exit(1);
  }, DEADLINE_MS);
  /** The call is over and only `keep` keeps the demo running, so a signal is the normal end. */
  let isOver = false;
  const interrupted = new Promise<number>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(isOver ? 0 : 130));
  });
  const played = play(options, () => {
    clearTimeout(stuck);
    isOver = true;
  });
  try {
    return await Promise.race([played, interrupted]);
  } finally {
    clearTimeout(stuck);
    for (const step of clean.splice(0).reverse()) await step();
  }
}

async function play(
  { terminal, keep, encrypt, sentences, onResult }: DemoOptions,
  onOver: () => void,
): Promise<number> {
  const screen = openScreen(terminal);
  const stage = await setUp(screen, { keep, encrypt, json: terminal.json, conversation: conversationOf(sentences) });
  const ending = await oneCall(screen, stage);
  await report(screen, stage, ending);
  const exitCode = screen.checks.every(({ ok }) => ok) ? 0 : 1;
  const consoleUrl = keep ? `${stage.tandem.url}${await stage.tandem.createOwnerLogin()}` : null;
  onResult?.({
    ...{ call: ending.call, checks: screen.checks, url: stage.tandem.url, api_key: stage.apiKey },
    console_url: consoleUrl,
  });
  if (consoleUrl !== null) {
    onOver();
    await keepUp(screen, { ...stage, consoleUrl });
  }
  return exitCode;
}

/** Clean-ups, run in reverse order however the demo ends. */
const clean: (() => Promise<unknown>)[] = [];

interface Stage {
  encrypt: boolean;
  tandem: Tandem;
  town: Town;
  conversation: Conversation;
  prompts: Prompts;
  api: Api;
  apiKey: string;
  receiver: Awaited<ReturnType<typeof startCallbackReceiver>>;
}

/** Starts the server on a temporary data folder, with trunk, numbers, a funded wallet and two phones. */
async function setUp(
  screen: Screen,
  {
    keep,
    encrypt,
    json,
    conversation: sentences,
  }: { keep: boolean; encrypt: boolean; json: boolean; conversation: Conversation },
): Promise<Stage> {
  screen.heading('Booting, everything embedded');
  const dataDir = await mkdtemp(join(tmpdir(), 'tandem-demo-'));
  clean.push(() => rm(dataDir, { recursive: true, force: true }));
  const receiver = await startCallbackReceiver(CALLBACK_SECRET);
  clean.push(() => receiver.stop());
  let town: Town | null = null;
  clean.push(async () => await town?.stop());
  const config = loadConfig({
    ...speechSettings(process.env),
    TANDEM_DATA_DIR: dataDir,
    PORT: '0',
    SIP_PORT: '0',
    CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
  });
  const starting = startTandem(config, {
    logger: createLogger({ level: 'warn', ...(json && { destination: process.stderr }) }),
    onStep: ({ name, ms }) => screen.line(`${PARTS[name] ?? name} ${ms} ms`),
  });
  // Stops before the phones, because it hangs them up. Also if it was interrupted during the start.
  clean.push(async () => (await starting.catch(() => null))?.stop());
  const tandem = await starting;
  const apiKey = tandem.mintedApiKey ?? '';
  const api = apiClient({ url: tandem.url, apiKey });
  const [wallet, prompts] = [await fund(tandem), await spokenForDemo(api)];
  const spokenMs = Object.values(prompts).reduce((ms, samples) => ms + samples.length / 8, 0);
  screen.line(
    `${(spokenMs / 1000).toFixed(1)} s of speech made for it   ${Object.values(PROMPTS).map(spoken).join(', ')}`,
  );
  const conversation = withFarewell(sentences, prompts.farewell);
  const encryption = encrypt ? 'required' : 'none';
  town = await startTown({ conversation, encryption, ...(keep && { autoHangupAfterMs: 60_000 }) });
  screen.line(`two softphones and a carrier  ${town.agent.sipUri}, ${town.customer.sipUri}, ${town.carrier.sipUri}`);

  await api.post('/dialer/trunks', {
    name: 'Loopback',
    sip_uri: town.carrier.sipUri,
    transport: 'udp',
    media_encryption: encryption,
    numbers: DIDS,
    channels: 10,
    price_per_minute_usd: PRICE_PER_MINUTE_USD,
  });
  for (const e164 of DIDS) await api.post('/dialer/numbers', { e164 });
  screen.line(
    `a trunk to it at ${PRICE_PER_MINUTE_USD} USD a minute, numbers ${DIDS.join(' and ')}, wallet ${usd(wallet.balanceNano)}`,
  );
  return { encrypt, tandem, town, conversation, prompts, api, apiKey, receiver };
}

async function fund({ databaseUrl, workspaceId }: Tandem) {
  const { sql, close } = await openPool(databaseUrl);
  const { wallet } = await topUp(sql, {
    workspaceId,
    amountNano: TOP_UP_NANO,
    paymentType: 'admin_bonus',
    operationKey: 'demo:top-up',
    description: 'Demo credit',
  });
  await close();
  return wallet;
}

/** Only the speech engines come from the operator's environment. */
function speechSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => /^(STT|TTS)_|^MODELS_DIR$/.test(name)));
}

const PARTS: Record<string, string> = {
  storage: 'Postgres, schema, job queue   ',
  media: 'media workers                 ',
  sip: 'SIP server and gateway        ',
  speech: 'listeners, speech recogniser  ',
  actors: 'call actors, callback sender  ',
  http: 'HTTP server                   ',
};

interface Ending {
  call: PublicCall;
  callback: ReceivedCallback;
}

/**
 * Places the call, shows its progress, hangs up once everything is recognised, and waits for recording and callback.
 */
async function oneCall(screen: Screen, { tandem, api, apiKey, receiver, conversation }: Stage): Promise<Ending> {
  const path = '/dialer/click2call';
  const request = {
    agent_number: NUMBERS.agent,
    customer_number: '98222-22222',
    did: DIDS[0],
    reference_id: `demo-${Date.now()}`,
    callback_url: receiver.url,
    callback_secret: CALLBACK_SECRET,
    record: true,
    transcribe: true,
    announce: PROMPTS.announcement,
    whisper: PROMPTS.whisper,
    metadata: { ticket: 4711 },
  };
  screen.heading('Placing the call');
  for (const line of curlOf({ url: tandem.url, apiKey, path, body: request }).split('\n')) screen.line(line);
  const { call } = await api.post<{ call: PublicCall }>(path, request);
  screen.heading(`Call ${call.call_id}`);

  let ringing = true;
  const rings = setInterval(() => ringing && screen.progress('☎ ringing …'), 250);
  const words = awaitWords(conversation);
  for await (const event of api.events(call.call_id)) {
    screen.event(event);
    words.take(event);
    if (event.event === 'call.bridged') {
      ringing = false;
      // Fails only if the server is stopping, which hangs up itself.
      void talkProgress(screen, words).then(() => api.post(`${path}/${call.call_id}/hangup`).catch(() => {}));
    }
  }
  clearInterval(rings);

  const callback = await receiver.callbackOf(call.call_id);
  let final = await api.get<{ call: PublicCall }>(`${path}/${call.call_id}?refresh=1`);
  for (let tries = 0; !final.call.recording_available && final.call.recording_id && tries < 20; tries += 1) {
    screen.progress('storing the recording …');
    await sleep(100);
    final = await api.get(`${path}/${call.call_id}?refresh=1`);
  }
  return { call: final.call, callback };
}

/** Checks and reports every result. */
async function report(
  screen: Screen,
  { encrypt, tandem, town, prompts, api, conversation }: Stage,
  { call, callback }: Ending,
): Promise<void> {
  screen.heading('The call object');
  for (const line of JSON.stringify(call, null, 2).split('\n')) screen.line(line);

  screen.heading('Measured');
  screen.check(call.state === 'completed', `the call is ${call.state}, ${call.talk_seconds} s of talk`);
  for (const check of checkReception(town, conversation)) {
    const other = check.listener === 'agent' ? 'customer' : 'agent';
    screen.check(
      check.receivedOther,
      `the ${check.listener} heard the ${other}: correlation ${check.otherLikeness.toFixed(3)} with what was said ` +
        `(own voice ${check.ownLikeness.toFixed(3)}), ${check.packets} packets, ${check.lost} lost`,
    );
  }
  if (encrypt) {
    const suites = [call.quality?.agent?.encryption, call.quality?.customer?.encryption];
    screen.check(suites.every(Boolean), `both legs were encrypted: ${suites.join(' and ')}`);
  }
  checkPrompts(screen, { town, prompts });
  await checkRecording(screen, { api, conversation, prompts, call });
  const transcript = await api.get<PublicTranscript>(`/dialer/click2call/${call.call_id}/transcript`);
  checkTranscript(screen, { conversation, transcript });
  await checkRemembered(screen, { api, transcript });
  const { sql, close } = await openPool(tandem.databaseUrl);
  const wallet = await walletOf(sql, tandem.workspaceId);
  const spentOn = async (service: 'stt' | 'tts' | 'llm' | 'memory') => {
    const { rows } = await listUsage(sql, { workspaceId: tandem.workspaceId, service }, { page: 1, limit: 100 });
    return rows.reduce((sum, { amountNano }) => sum + amountNano, 0n);
  };
  const [transcriptNano, speechNano] = [await spentOn('stt'), await spentOn('tts')];
  const [languageNano, memoryNano] = [await spentOn('llm'), await spentOn('memory')];
  await close();
  const callNano = BigInt(Math.round((call.cost_usd ?? 0) * 1e9));
  const expected = ((call.talk_seconds ?? 0) * PRICE_PER_MINUTE_USD) / 60;
  screen.check(
    call.billing_status === 'billed' &&
      Math.abs((call.cost_usd ?? 0) - expected) < 1e-8 &&
      wallet.balanceNano === TOP_UP_NANO - callNano - transcriptNano - speechNano - languageNano - memoryNano &&
      wallet.heldNano === 0n,
    `billed ${call.cost_usd} USD for ${call.talk_seconds} s and ${usd(transcriptNano)} for the words, ` +
      `${usd(speechNano)} for what the platform said, ${usd(languageNano)} for the correction, ` +
      `${usd(memoryNano)} for the memory; ` +
      `the wallet has ${usd(wallet.balanceNano)}, nothing held`,
  );
  screen.check(callback.verified.ok, `callback ${callback.body.event}, signature verified: ${callback.signature}`);
}

/** Compares the platform's announcements with the audio at each phone. */
function checkPrompts(screen: Screen, { town, prompts }: Pick<Stage, 'town' | 'prompts'>): void {
  const [atAgent, atCustomer] = [town.agent.received().pcm, town.customer.received().pcm];
  for (const [what, text] of [
    ['announcement', PROMPTS.announcement],
    ['whisper', PROMPTS.whisper],
  ] as const) {
    const [agent, customer] = [likenessOf(atAgent, prompts[what]), likenessOf(atCustomer, prompts[what])];
    screen.check(
      agent > SAME_LIKENESS && customer < FOREIGN_LIKENESS,
      `the ${what} ${spoken(text)} reached the agent (correlation ${agent.toFixed(3)}) and not the customer ` +
        `(${customer.toFixed(3)})`,
    );
  }
  const farewell = likenessOf(atAgent, prompts.farewell);
  screen.check(
    farewell > SAME_LIKENESS,
    `the agent heard ${spoken(PROMPTS.farewell)}, synthesised for the customer: correlation ${farewell.toFixed(3)}`,
  );
}

/** Downloads the recording through its presigned URL and checks both channels. */
async function checkRecording(
  screen: Screen,
  { api, conversation, prompts, call }: Evidence & Pick<Stage, 'prompts'>,
): Promise<void> {
  if (!call.recording_available) return screen.check(false, `the recording is ${call.recording_status}`);
  const { recording } = await api.post<{ recording: { playback_url: string; recording_size: number } }>(
    `/dialer/click2call/${call.call_id}/recording`,
  );
  const response = await fetch(recording.playback_url);
  const dir = resolve('.data/demo');
  await mkdir(dir, { recursive: true });
  const path = join(dir, `${call.call_id}.wav`);
  await writeFile(path, Buffer.from(await response.arrayBuffer()));
  await copyFile(path, join(dir, 'last.wav'));
  const wav = await readWav(path);
  const [left, right] = wav.samples as [Int16Array, Int16Array];
  const seconds = left.length / wav.sampleRateHz;
  const of = (speaker: string) => conversation.sentences.filter((sentence) => sentence.speaker === speaker);
  const likenessIn = (channel: Int16Array, speaker: string) =>
    of(speaker).map(({ samples }) => likenessOf(channel, samples));
  const agent = Math.min(...likenessIn(left, 'agent'));
  const customer = Math.min(...likenessIn(right, 'customer'));
  const whispered = [left, right].map((channel) => likenessOf(channel, prompts.whisper));
  const mixedUp = Math.max(...likenessIn(left, 'customer'), ...likenessIn(right, 'agent'), ...whispered);
  const talkS = call.talk_seconds ?? 0;
  const delayS = await recordingDelayS(api, call);
  screen.check(
    Math.min(agent, customer) > LEAST_RECORDED_LIKENESS &&
      mixedUp < FOREIGN_LIKENESS &&
      seconds > talkS - delayS - 1.5 &&
      seconds < talkS + 1.5,
    `recording ${path}\n    ${seconds.toFixed(2)} s stereo, agent left (correlation ${agent.toFixed(3)}), ` +
      `customer right (${customer.toFixed(3)}), ${recording.recording_size} bytes` +
      (delayS < 1 ? '' : `, begun ${delayS.toFixed(1)} s after the talk`),
  );
}

/** Seconds from the beginning of the talk to that of its recording. On an overloaded machine the file opens late. */
async function recordingDelayS(api: Api, call: PublicCall): Promise<number> {
  const startedMs = { 'call.bridged': 0, 'recording.started': 0 };
  for await (const { event, at } of api.events(call.call_id)) {
    if (event === 'call.bridged' || event === 'recording.started') startedMs[event] = Date.parse(at);
  }
  return Math.max(0, startedMs['recording.started'] - startedMs['call.bridged']) / 1000;
}

/** Compares each leg's transcript with the published texts. */
function checkTranscript(
  screen: Screen,
  { conversation, transcript }: { conversation: Conversation; transcript: PublicTranscript },
): void {
  const failure = transcript.error === null ? '' : ` (it failed: ${transcript.error})`;
  for (const leg of ['agent', 'customer'] as const) {
    const said = conversation.sentences.filter(({ speaker }) => speaker === leg).map(({ text }) => text);
    const segments = transcript.segments.filter((segment) => segment.leg === leg).map(({ text }) => text);
    const { words, understood } = wordsUnderstood(said.join(' '), segments.join(' '));
    screen.check(
      understood >= words * LEAST_UNDERSTOOD,
      `transcript of the ${leg}: ${understood} of ${words} words understood of ${spoken(said.join(' / '))}${failure}`,
    );
  }
}

interface Evidence {
  api: Api;
  conversation: Conversation;
  call: PublicCall;
}

/** Places calls until a signal, so that the console shows a live one. */
async function keepUp(screen: Screen, { tandem, town, api, apiKey, consoleUrl }: Stage & { consoleUrl: string }) {
  screen.heading('Still up, with a live call. See it in the console, with a link that works once:');
  screen.line(consoleUrl);
  screen.line('');
  screen.line(`API      ${tandem.url}`);
  screen.line(`OpenAPI  ${tandem.url}/openapi.json`);
  screen.line(`API key  ${apiKey}`);
  screen.line('Place more calls with the curl above, each with a new reference_id. Ctrl-C ends.');
  town.repeatSpeech();
  await keepCalling({
    async oneCall() {
      const { call } = await api.post<{ call: PublicCall }>('/dialer/click2call', {
        ...{ agent_number: NUMBERS.agent, customer_number: NUMBERS.customer, did: DIDS[1] },
        ...{ record: true, transcribe: true, metadata: { ticket: 4711 } },
      });
      for await (const _event of api.events(call.call_id));
    },
    pause: () => sleep(BETWEEN_CALLS_MS),
    onRefusal: ({ message }) => screen.progress(`The next call is tried again in a moment: ${message}`),
  }).catch((error: Error) => screen.line(`No more calls are placed: ${error.message}`));
  await new Promise(() => {});
}

async function openPool(url: string) {
  const sql = connect({ url, max: 1 });
  return { sql, close: () => sql.end() };
}

function usd(nano: bigint): string {
  return `${Number(nano) / 1e9} USD`;
}
