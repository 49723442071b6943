import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PublicCall } from '../../actors/call-view.ts';
import { loadConfig } from '../../config.ts';
import { createLogger } from '../../logging.ts';
import { startTandem, type Tandem } from '../../main.ts';
import { toneLevelDbov } from '../../media/dsp/goertzel.ts';
import { readWav } from '../../media/wav.ts';
import { connect } from '../../storage/database.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { type Api, apiClient } from '../cli/api-client.ts';
import type { Terminal } from '../cli/terminal.ts';
import { type ReceivedCallback, startCallbackReceiver } from './callback-receiver.ts';
import { curlOf } from './curl.ts';
import { openScreen, type Screen } from './screen.ts';
import { measureHearing, NUMBERS, startTown, type Town, VOICES } from './town.ts';

const CALLBACK_SECRET = 'demo-callback-secret-0123456789';
const DIDS = ['+911140000001', '+911140000002'];
const PRICE_PER_MINUTE_USD = 0.012;
/** A demo that takes longer than this is stuck, and says so. */
const DEADLINE_MS = 55_000;

export interface DemoOptions {
  terminal: Terminal;
  /** The server and the phones stay up afterwards, until a signal. */
  keep: boolean;
  talkSeconds: number;
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
 * Boots everything embedded, rings two softphones over real SIP and RTP, bridges and records them, and shows each
 * state as it happens. Resolves with the exit code: 0 when every claim was found true, 130 when a signal cut it short.
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

async function play({ terminal, keep, talkSeconds, onResult }: DemoOptions, onOver: () => void): Promise<number> {
  const screen = openScreen(terminal);
  const stage = await setUp(screen, { keep, json: terminal.json });
  const ending = await oneCall(screen, stage, talkSeconds);
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
  tandem: Tandem;
  town: Town;
  api: Api;
  apiKey: string;
  receiver: Awaited<ReturnType<typeof startCallbackReceiver>>;
}

/** Boots the server on a data folder of its own, and furnishes it: trunk, numbers, a funded wallet, two phones. */
async function setUp(screen: Screen, { keep, json }: { keep: boolean; json: boolean }): Promise<Stage> {
  screen.heading('Booting, everything embedded');
  const dataDir = await mkdtemp(join(tmpdir(), 'tandem-demo-'));
  clean.push(() => rm(dataDir, { recursive: true, force: true }));
  const config = loadConfig({
    TANDEM_DATA_DIR: dataDir,
    PORT: '0',
    SIP_PORT: '0',
    CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
  });
  const tandem = await startTandem(config, {
    logger: createLogger({ level: 'warn', ...(json && { destination: process.stderr }) }),
    onStep: ({ name, ms }) => screen.line(`${PARTS[name] ?? name} ${ms} ms`),
  });
  clean.push(() => tandem.stop());
  const apiKey = tandem.mintedApiKey ?? '';
  const api = apiClient({ url: tandem.url, apiKey });
  const receiver = await startCallbackReceiver(CALLBACK_SECRET);
  clean.push(() => receiver.stop());
  const town = await startTown(keep ? { autoHangupAfterMs: 60_000 } : {});
  clean.push(() => town.stop());
  screen.line(`two softphones and a carrier  ${town.agent.sipUri}, ${town.customer.sipUri}, ${town.carrier.sipUri}`);

  await api.post('/dialer/trunks', {
    name: 'Loopback',
    sip_uri: town.carrier.sipUri,
    transport: 'udp',
    numbers: DIDS,
    channels: 10,
    price_per_minute_usd: PRICE_PER_MINUTE_USD,
  });
  for (const e164 of DIDS) await api.post('/dialer/numbers', { e164 });
  const { sql, close } = await openPool(tandem.databaseUrl);
  const { wallet } = await topUp(sql, {
    workspaceId: tandem.workspaceId,
    amountNano: 5_000_000_000n,
    paymentType: 'admin_bonus',
    operationKey: 'demo:top-up',
    description: 'Demo credit',
  });
  await close();
  screen.line(
    `a trunk to it at ${PRICE_PER_MINUTE_USD} USD a minute, numbers ${DIDS.join(' and ')}, wallet ${usd(wallet.balanceNano)}`,
  );
  return { tandem, town, api, apiKey, receiver };
}

const PARTS: Record<string, string> = {
  storage: 'Postgres, schema, job queue   ',
  media: 'media workers                 ',
  sip: 'SIP server and gateway        ',
  actors: 'call actors, callback sender  ',
  http: 'HTTP server                   ',
};

interface Ending {
  call: PublicCall;
  callback: ReceivedCallback;
}

/** Places the call, shows what happens, lets them talk, hangs up, and waits for recording and callback. */
async function oneCall(screen: Screen, { tandem, api, apiKey, receiver }: Stage, talkSeconds: number): Promise<Ending> {
  const path = '/dialer/click2call';
  const request = {
    agent_number: NUMBERS.agent,
    customer_number: '98222-22222',
    did: DIDS[0],
    reference_id: `demo-${Date.now()}`,
    callback_url: receiver.url,
    callback_secret: CALLBACK_SECRET,
    record: true,
    metadata: { ticket: 4711 },
  };
  screen.heading('Placing the call');
  for (const line of curlOf({ url: tandem.url, apiKey, path, body: request }).split('\n')) screen.line(line);
  const { call } = await api.post<{ call: PublicCall }>(path, request);
  screen.heading(`Call ${call.call_id}`);

  let ringing = true;
  const rings = setInterval(() => ringing && screen.progress('☎ ringing …'), 250);
  for await (const event of api.events(call.call_id)) {
    screen.event(event);
    if (event.event === 'call.bridged') {
      ringing = false;
      void talk(screen, talkSeconds).then(() => api.post(`${path}/${call.call_id}/hangup`));
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

async function talk(screen: Screen, seconds: number): Promise<void> {
  const width = 30;
  for (let tenth = 0; tenth <= seconds * 10; tenth += 1) {
    const done = Math.round((tenth / (seconds * 10)) * width);
    screen.progress(`talking ${'█'.repeat(done)}${'░'.repeat(width - done)} ${(tenth / 10).toFixed(1)} s`);
    await sleep(100);
  }
}

/** What came of it, every claim measured. */
async function report(screen: Screen, { tandem, town, api }: Stage, { call, callback }: Ending): Promise<void> {
  screen.heading('The call object');
  for (const line of JSON.stringify(call, null, 2).split('\n')) screen.line(line);

  screen.heading('What was measured');
  screen.check(call.state === 'completed', `the call is ${call.state}, ${call.talk_seconds} s of talk`);
  for (const hearing of measureHearing(town)) {
    const other = hearing.listener === 'agent' ? 'customer' : 'agent';
    screen.check(
      hearing.heardTheOther,
      `the ${hearing.listener} heard the ${other}: ${hearing.otherDbov.toFixed(1)} dBov at ${VOICES[other].frequencyHz} Hz ` +
        `(own voice ${hearing.ownDbov.toFixed(1)} dBov), ${hearing.packets} packets, ${hearing.lost} lost`,
    );
  }
  await checkRecording(screen, api, call);
  const { sql, close } = await openPool(tandem.databaseUrl);
  const wallet = await walletOf(sql, tandem.workspaceId);
  await close();
  const expected = ((call.talk_seconds ?? 0) * PRICE_PER_MINUTE_USD) / 60;
  screen.check(
    call.billing_status === 'billed' && Math.abs((call.cost_usd ?? 0) - expected) < 1e-8 && wallet.heldNano === 0n,
    `billed ${call.cost_usd} USD for ${call.talk_seconds} s; the wallet has ${usd(wallet.balanceNano)}, nothing held`,
  );
  screen.check(callback.verified.ok, `callback ${callback.body.event}, signature verified: ${callback.signature}`);
}

/** Fetches the recording through its signed URL, keeps it, and listens to both channels. */
async function checkRecording(screen: Screen, api: Api, call: PublicCall): Promise<void> {
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
  const middle = (channel: Int16Array) => channel.subarray(channel.length >> 2, (channel.length * 3) >> 2);
  const agentDbov = toneLevelDbov(middle(left), VOICES.agent.frequencyHz, wav.sampleRateHz);
  const customerDbov = toneLevelDbov(middle(right), VOICES.customer.frequencyHz, wav.sampleRateHz);
  screen.check(
    agentDbov > -30 && customerDbov > -30 && Math.abs(seconds - (call.talk_seconds ?? 0)) < 1.5,
    `recording ${path}\n    ${seconds.toFixed(2)} s stereo, agent left ${agentDbov.toFixed(1)} dBov, ` +
      `customer right ${customerDbov.toFixed(1)} dBov, ${recording.recording_size} bytes`,
  );
}

async function keepUp(screen: Screen, { tandem, apiKey }: Stage): Promise<void> {
  screen.heading('Still up: place more calls with the curl above (a new reference_id each time)');
  screen.line(`API      ${tandem.url}`);
  screen.line(`health   ${tandem.url}/healthz`);
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
