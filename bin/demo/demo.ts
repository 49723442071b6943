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
import { FOREIGN_LIKENESS, likenessOf, SAME_LIKENESS, wordsUnderstood } from './likeness.ts';
import { checkRemembered } from './remembered.ts';
import { openScreen, type Screen } from './screen.ts';
import { spokenForDemo, TOLD, type Told } from './spoken-by-platform.ts';
import { measureHearing, NUMBERS, startTown, type Town } from './town.ts';

const CALLBACK_SECRET = 'demo-callback-secret-0123456789';
const DIDS = ['+911140000001', '+911140000002'];
const PRICE_PER_MINUTE_USD = 0.012;
/** The recogniser inside is small: now and then it gets half of a sentence wrong. Of another one next to nothing fits. */
const LEAST_UNDERSTOOD = 1 / 3;
const TOP_UP_NANO = 5_000_000_000n;
/** A demo that takes longer than this is stuck, and says so. */
const DEADLINE_MS = 150_000;

export interface DemoOptions {
  terminal: Terminal;
  /** The server and the phones stay up afterwards, until a signal. */
  keep: boolean;
  /** The trunk and the phones insist on SRTP. */
  encrypt: boolean;
  /** How many the phones say to each other. */
  sentences: number;
  /** Told what came of it once everything is measured; with `keep` the demo goes on after that. */
  onResult?: (result: DemoResult) => void;
}

export interface DemoResult {
  call: PublicCall;
  checks: readonly { ok: boolean; text: string }[];
  url: string;
  api_key: string;
}

/**
 * Boots everything embedded, rings two softphones over real SIP and RTP, bridges, records and transcribes them, and
 * shows each state, and each sentence, as it happens. Resolves with the exit code: 0 when every claim was found true, 130 when a signal cut it short.
 */
export async function runDemo(options: DemoOptions): Promise<number> {
  const stuck = setTimeout(() => {
    process.stderr.write(
      `\nThe demo is stuck after ${DEADLINE_MS / 1000} s. Run it again, and report it if it stays so.\n`,
    );
    process.exit(1);
  }, DEADLINE_MS);
  /** The call is done and only `keep` keeps us: being interrupted is the way to end. */
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
  onResult?.({ call: ending.call, checks: screen.checks, url: stage.tandem.url, api_key: stage.apiKey });
  if (keep) {
    onOver();
    await keepUp(screen, stage);
  }
  return exitCode;
}

/** Undoes what was set up, last first, however the demo ends. */
const clean: (() => Promise<unknown>)[] = [];

interface Stage {
  encrypt: boolean;
  tandem: Tandem;
  town: Town;
  conversation: Conversation;
  told: Told;
  api: Api;
  apiKey: string;
  receiver: Awaited<ReturnType<typeof startCallbackReceiver>>;
}

/** Boots the server on a data folder of its own, and furnishes it: trunk, numbers, a funded wallet, two phones. */
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
  // Before the phones, which it hangs up; also when it was interrupted while it started.
  clean.push(async () => (await starting.catch(() => null))?.stop());
  const tandem = await starting;
  const apiKey = tandem.mintedApiKey ?? '';
  const api = apiClient({ url: tandem.url, apiKey });
  const [wallet, told] = [await fund(tandem), await spokenForDemo(api)];
  const spokenMs = Object.values(told).reduce((ms, samples) => ms + samples.length / 8, 0);
  screen.line(
    `${(spokenMs / 1000).toFixed(1)} s of speech made for it   ${Object.values(TOLD).map(spoken).join(', ')}`,
  );
  const conversation = withFarewell(sentences, told.farewell);
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
  return { encrypt, tandem, town, conversation, told, api, apiKey, receiver };
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

/** The speech engines are the operator's choice; all else is the demo's own. */
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

/** Places the call, shows what happens, hangs up once all is said and understood, waits for recording and callback. */
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
    announce: TOLD.announcement,
    whisper: TOLD.whisper,
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
      // It fails only when the server is stopping, which hangs up itself.
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

/** What came of it, every claim measured. */
async function report(
  screen: Screen,
  { encrypt, tandem, town, told, api, conversation }: Stage,
  { call, callback }: Ending,
): Promise<void> {
  screen.heading('The call object');
  for (const line of JSON.stringify(call, null, 2).split('\n')) screen.line(line);

  screen.heading('Measured');
  screen.check(call.state === 'completed', `the call is ${call.state}, ${call.talk_seconds} s of talk`);
  for (const hearing of measureHearing(town, conversation)) {
    const other = hearing.listener === 'agent' ? 'customer' : 'agent';
    screen.check(
      hearing.heardTheOther,
      `the ${hearing.listener} heard the ${other}: correlation ${hearing.otherLikeness.toFixed(3)} with what was said ` +
        `(own voice ${hearing.ownLikeness.toFixed(3)}), ${hearing.packets} packets, ${hearing.lost} lost`,
    );
  }
  if (encrypt) {
    const suites = [call.quality?.agent?.encryption, call.quality?.customer?.encryption];
    screen.check(suites.every(Boolean), `both legs were encrypted: ${suites.join(' and ')}`);
  }
  checkTold(screen, { town, told });
  await checkRecording(screen, { api, conversation, told, call });
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

/** Compares what the platform said with what reached each phone. */
function checkTold(screen: Screen, { town, told }: Pick<Stage, 'town' | 'told'>): void {
  const [atAgent, atCustomer] = [town.agent.heard().pcm, town.customer.heard().pcm];
  for (const [what, text] of [
    ['announcement', TOLD.announcement],
    ['whisper', TOLD.whisper],
  ] as const) {
    const [agent, customer] = [likenessOf(atAgent, told[what]), likenessOf(atCustomer, told[what])];
    screen.check(
      agent > SAME_LIKENESS && customer < FOREIGN_LIKENESS,
      `the ${what} ${spoken(text)} reached the agent (correlation ${agent.toFixed(3)}) and not the customer ` +
        `(${customer.toFixed(3)})`,
    );
  }
  const farewell = likenessOf(atAgent, told.farewell);
  screen.check(
    farewell > SAME_LIKENESS,
    `the agent heard ${spoken(TOLD.farewell)}, synthesised for the customer: correlation ${farewell.toFixed(3)}`,
  );
}

/** Fetches the recording through its signed URL, keeps it, and listens to both channels. */
async function checkRecording(
  screen: Screen,
  { api, conversation, told, call }: Evidence & Pick<Stage, 'told'>,
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
  const whispered = [left, right].map((channel) => likenessOf(channel, told.whisper));
  const mixedUp = Math.max(...likenessIn(left, 'customer'), ...likenessIn(right, 'agent'), ...whispered);
  screen.check(
    Math.min(agent, customer) > SAME_LIKENESS &&
      mixedUp < FOREIGN_LIKENESS &&
      Math.abs(seconds - (call.talk_seconds ?? 0)) < 1.5,
    `recording ${path}\n    ${seconds.toFixed(2)} s stereo, agent left (correlation ${agent.toFixed(3)}), ` +
      `customer right (${customer.toFixed(3)}), ${recording.recording_size} bytes`,
  );
}

/** Compares what was understood of each leg with the published texts. */
function checkTranscript(
  screen: Screen,
  { conversation, transcript }: { conversation: Conversation; transcript: PublicTranscript },
): void {
  for (const leg of ['agent', 'customer'] as const) {
    const said = conversation.sentences.filter(({ speaker }) => speaker === leg).map(({ text }) => text);
    const segments = transcript.segments.filter((segment) => segment.leg === leg).map(({ text }) => text);
    const { words, understood } = wordsUnderstood(said.join(' '), segments.join(' '));
    screen.check(
      understood >= words * LEAST_UNDERSTOOD,
      `transcript of the ${leg}: ${understood} of ${words} words understood of ${spoken(said.join(' / '))}`,
    );
  }
}

interface Evidence {
  api: Api;
  conversation: Conversation;
  call: PublicCall;
}

async function keepUp(screen: Screen, { tandem, apiKey }: Stage): Promise<void> {
  screen.heading('Still up: place more calls with the curl above (a new reference_id each time)');
  screen.line(`API      ${tandem.url}`);
  screen.line(`health   ${tandem.url}/readyz`);
  screen.line(`calls    ${tandem.url}/dialer/click2call`);
  screen.line(`OpenAPI  ${tandem.url}/openapi.json`);
  screen.line(`API key  ${apiKey}`);
  screen.line('Ctrl-C ends.');
  await new Promise(() => {});
}

async function openPool(url: string) {
  const sql = connect({ url, max: 1 });
  return { sql, close: () => sql.end() };
}

function usd(nano: bigint): string {
  return `${Number(nano) / 1e9} USD`;
}
