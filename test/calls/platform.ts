import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PublicCall } from '../../actors/call-view.ts';
import { apiClient, type CallEvent } from '../../bin/cli/api-client.ts';
import { startCallbackReceiver } from '../../bin/demo/callback-receiver.ts';
import { loadConfig } from '../../config.ts';
import { createLogger } from '../../logging.ts';
import { startTandem, type Tandem } from '../../main.ts';
import { parseWav } from '../../media/wav.ts';
import type { Sql } from '../../storage/database.ts';
import { topUp } from '../../storage/ledger.ts';
import { untilTruthy } from '../eventually.ts';
import { DRACHTIO, drachtioSettings, sipAddressOf } from '../sip/drachtio-endpoint.ts';
import { type LoopbackCarrier, startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { type Softphone, type SoftphoneOptions, startSoftphone } from '../softphone/softphone.ts';
import { createTestDatabase } from '../storage/test-database.ts';

export const AGENT = '+919811111111';
export const CUSTOMER = '+919822222222';
export const DID = '+911140000001';
export const SECRET = 'a-callback-secret-of-the-tests';
export const AGENT_HZ = 440;
export const CUSTOMER_HZ = 660;

/** Below the test timeout, so that the failure names the event. */
const EVENT_WITHIN_MS = 100_000;

/** The test connects its own SIP server. */
const ELSEWHERE = { host: '127.0.0.1', port: 0 };

/** A server with a trunk to a loopback carrier, a number, a funded wallet and a callback receiver. */
export interface Platform extends AsyncDisposable {
  tandem: Tandem;
  sql: Sql;
  carrier: LoopbackCarrier;
  /** Where carriers reach the SIP server. */
  sipAddress: { host: string; port: number };
  receiver: Awaited<ReturnType<typeof startCallbackReceiver>>;
  trunkId: string;
  /** The caller names the shape of `data`. */
  ask<Data = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<Answer<Data>>;
  /** Places a call and expects admission. */
  place(request?: Record<string, unknown>): Promise<PublicCall>;
  call(callId: string): Promise<PublicCall>;
  /** Resolves with all events after the terminal one. */
  ended(callId: string): Promise<CallEvent[]>;
  until(callId: string, event: string, matches?: (event: CallEvent) => boolean): Promise<CallEvent>;
  /** Resolves once the relay received that many packets from each leg. */
  untilRelayed(callId: string, packets: number): Promise<void>;
  /** Downloads the recording of a finished call: agent left, customer right. */
  recordingOf(
    callId: string,
  ): Promise<{ left: Int16Array; right: Int16Array; durationMs: number; sampleRateHz: number }>;
  /** A phone that the carrier routes a number to; stopped with the platform. */
  phone(number: string, options?: Partial<SoftphoneOptions>): Promise<Softphone>;
  /** An agent and a customer with different tones, both answering at once. */
  parties(options?: { agent?: Partial<SoftphoneOptions>; customer?: Partial<SoftphoneOptions> }): Promise<{
    agent: Softphone;
    customer: Softphone;
  }>;
}

interface Answer<Data> {
  status: number;
  headers: Headers;
  body: { data: Data; code?: string; message?: string };
}

export interface PlatformOptions {
  env?: Record<string, string>;
  balanceNano?: bigint;
  pricePerMinuteUsd?: number;
  trunk?: Record<string, unknown>;
  carrier?: Parameters<typeof startLoopbackCarrier>[0];
  /** Default: no log. */
  logger?: Parameters<typeof startTandem>[1]['logger'];
  dns?: Pick<Parameters<typeof startTandem>[1], 'resolve' | 'services'>;
}

export async function startPlatform(options: PlatformOptions = {}): Promise<Platform> {
  const clean: (() => Promise<unknown>)[] = [];
  /** Closed after the server, which hangs up live calls. */
  const peers: (() => Promise<unknown>)[] = [];
  const database = await createTestDatabase();
  clean.push(() => database.drop());
  const dataDir = await mkdtemp(join(tmpdir(), 'tandem-test-'));
  clean.push(() => rm(dataDir, { recursive: true, force: true }));
  const config = loadConfig({
    TANDEM_DATA_DIR: dataDir,
    DATABASE_URL: database.url,
    PORT: '0',
    SIP_PORT: '0',
    ...drachtioSettings(),
    CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
    ...rtpRange(),
    ...options.env,
  });
  const logger = options.logger ?? createLogger({ level: 'silent' });
  const tandem = await startTandem(config, { logger, warmUp: false, ...options.dns });
  clean.push(() => tandem.stop());
  const receiver = await startCallbackReceiver(SECRET);
  peers.push(() => receiver.stop());
  const carrier = await startLoopbackCarrier({ recordRoute: true, ...options.carrier });
  peers.push(() => carrier.stop());
  const api = apiClient({ url: tandem.url, apiKey: tandem.mintedApiKey ?? '' });
  const { id: trunkId } = await api.post<{ id: string }>('/dialer/trunks', {
    name: 'Loopback',
    sip_uri: carrier.sipUri,
    transport: 'udp',
    numbers: [DID],
    channels: 200,
    price_per_minute_usd: options.pricePerMinuteUsd ?? 0.6,
    ...options.trunk,
  });
  await api.post('/dialer/numbers', { e164: DID });
  await topUp(database.sql, {
    workspaceId: tandem.workspaceId,
    amountNano: options.balanceNano ?? 100_000_000_000n,
    paymentType: 'admin_bonus',
    operationKey: 'test:top-up',
    description: 'Test credit',
  });

  async function phone(number: string, phoneOptions: Partial<SoftphoneOptions> = {}): Promise<Softphone> {
    const softphone = await startSoftphone({ name: number, user: number, ...phoneOptions });
    carrier.routes.set(number, softphone.address);
    peers.push(() => softphone.stop());
    return softphone;
  }

  const platform: Platform = {
    tandem,
    sql: database.sql,
    carrier,
    sipAddress: tandem.sip ?? (DRACHTIO && (await sipAddressOf(DRACHTIO))) ?? ELSEWHERE,
    receiver,
    trunkId,
    phone,
    async ask<Data>(method: string, path: string, body?: unknown) {
      const response = await fetch(tandem.url + path, {
        method,
        headers: {
          authorization: `Bearer ${tandem.mintedApiKey}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return {
        status: response.status,
        headers: response.headers,
        body: (await response.json()) as Answer<Data>['body'],
      };
    },
    async place(request = {}) {
      const answer = await platform.ask<{ call: PublicCall }>('POST', '/dialer/click2call', {
        agent_number: AGENT,
        customer_number: CUSTOMER,
        ...request,
      });
      if (answer.status !== 201) throw new Error(`placement answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      return answer.body.data.call;
    },
    async call(callId) {
      return (await api.get<{ call: PublicCall }>(`/dialer/click2call/${callId}`)).call;
    },
    async ended(callId) {
      const events: CallEvent[] = [];
      for await (const event of api.events(callId)) events.push(event);
      return events;
    },
    async until(callId, name, matches = () => true) {
      const others: string[] = [];
      const signal = AbortSignal.timeout(EVENT_WITHIN_MS);
      try {
        for await (const event of api.events(callId, { signal })) {
          if (event.event === name && matches(event)) return event;
          others.push(`${event.event} ${JSON.stringify(event.data ?? {})}`);
        }
      } catch (error) {
        if (!signal.aborted) throw error;
        const seconds = EVENT_WITHIN_MS / 1000;
        throw new Error(`no such ${name} within ${seconds} s, only ${others.join(', ')}`, { cause: error });
      }
      throw new Error(`the call ended without such a ${name}, only ${others.join(', ')}`);
    },
    async untilRelayed(callId, packets) {
      await untilTruthy(async () => {
        const quality = await tandem.qualityOf(callId);
        return [quality?.agent, quality?.customer].every((leg) => (leg?.packets_received ?? 0) >= packets);
      }, 'audio flows on both legs');
    },
    async recordingOf(callId) {
      await untilTruthy(async () => {
        const { call } = await api.get<{ call: PublicCall }>(`/dialer/click2call/${callId}?refresh=1`);
        return call.recording_available;
      }, 'the recording is stored');
      const { recording } = await api.post<{ recording: { playback_url: string } }>(
        `/dialer/click2call/${callId}/recording`,
      );
      const wav = parseWav(Buffer.from(await (await fetch(recording.playback_url)).arrayBuffer()));
      const [left, right] = wav.samples as [Int16Array, Int16Array];
      return { left, right, durationMs: wav.durationMs, sampleRateHz: wav.sampleRateHz };
    },
    async parties({ agent, customer } = {}) {
      return {
        agent: await phone(AGENT, { audio: { kind: 'tone', frequencyHz: AGENT_HZ }, ...agent }),
        customer: await phone(CUSTOMER, { audio: { kind: 'tone', frequencyHz: CUSTOMER_HZ }, ...customer }),
      };
    },
    async [Symbol.asyncDispose]() {
      for (const step of [...clean.reverse(), ...peers]) await step();
    },
  };
  return platform;
}

/** Test files run in parallel, so each process uses its own RTP ports. */
function rtpRange(): Record<string, string> {
  const slot = Number(process.env.VITEST_POOL_ID ?? 0) % 10;
  const min = 40_000 + slot * 2_000;
  return { RTP_PORT_MIN: String(min), RTP_PORT_MAX: String(min + 1_999) };
}
