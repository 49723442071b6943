import { createCallActors } from '../../actors/call.actor.ts';
import { createCallFeed } from '../../actors/call-feed.ts';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { createCallSoundDesk } from '../../actors/call-sound.ts';
import { createCallSpeechDesk } from '../../actors/call-speech.ts';
import { createTranscriptDesk } from '../../actors/call-transcript.ts';
import type { Resolve } from '../../actors/callbacks/callback-url.ts';
import { createDialer } from '../../actors/dialer.actor.ts';
import type { PlaceCallRequest } from '../../actors/dialer.ts';
import type { TranscriberHypothesis } from '../../actors/leg-transcriber.ts';
import { createPhoneDesk } from '../../actors/phones/phone-desk.actor.ts';
import { createSealingKeys } from '../../runtime/sealed-file/format.ts';
import { readScript } from '../../speech/text/read-script.ts';
import type { Sql } from '../../storage/database.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import { type CallingLimits, NO_CALLING_LIMITS } from '../../storage/queries/calling-rules.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { PLACEMENT } from '../http/fake-dialer.ts';
import {
  anyTrunkTarget,
  createFakeDeliverer,
  createFakeDesk,
  createTestClock,
  createTestLogger,
  everyGateway,
  type FakeLeg,
  FakeMediaPlane,
  FakeSip,
  noOtherNodes,
} from './fakes.ts';
import { FakeWebRtc } from './phones/fake-webrtc.ts';
import { type Caller, seedCaller } from './seeds.ts';
import { FakeSpeech } from './speech-fakes.ts';
import { FakeListening, FakeRecognition } from './transcript-fakes.ts';

export interface DialerOptions {
  sql: Sql;
  /** For the dialer; default `sql`. */
  dialerSql?: Sql;
  /** For the call actors; default `sql`. */
  actorsSql?: Sql;
  sip?: FakeSip;
  speech?: FakeSpeech;
  resolve?: Resolve;
  callingLimits?: CallingLimits;
  /** Funds of the workspace; default 10 USD. */
  balanceNano?: bigint;
  /** Default: this node is alone. */
  nodes?: Pick<NodeDirectory, 'renew'>;
}

/** Click-to-call over a real database with a provisioned workspace and fake SIP and media. */
export async function openDialer({ sql, dialerSql = sql, actorsSql = sql, ...options }: DialerOptions) {
  const { balanceNano } = options;
  const caller: Caller = await seedCaller(sql, balanceNano === undefined ? {} : { balanceNano });
  const clock = createTestClock();
  const logger = createTestLogger();
  const sip = options.sip ?? new FakeSip();
  const mediaPlane = new FakeMediaPlane();
  const registry = createCallRegistry();
  const feed = createCallFeed({ logger });
  const deliverer = createFakeDeliverer();
  const recordings = createFakeDesk();
  const secrets = createSecretBox(Buffer.alloc(32, 7));
  const listening = new FakeListening();
  const recognition = new FakeRecognition();
  const speech = options.speech ?? new FakeSpeech();
  const hypotheses: TranscriberHypothesis[] = [];
  const transcripts = createTranscriptDesk({
    ...{ sql: actorsSql, listening, recognition, clock, logger },
    onHypothesis: (_, hypothesis) => hypotheses.push(hypothesis),
  });
  // The server passes the options of its parts, such as the path of the data folder.
  const folder = { path: '/data' };
  const speeches = createCallSpeechDesk({ ...folder, synthesis: speech, voices: speech, readScript, clock, logger });
  const downTrunks = new Set<string>();
  const sounds = createCallSoundDesk({
    ...{ sql: dialerSql, synthesis: speech, voices: speech, readScript, tempDir: '/tmp', allowCidrs: [] },
    ...(options.resolve && { resolve: options.resolve }),
  });
  const webRtc = new FakeWebRtc();
  const phones = createPhoneDesk({ boot: 'boot-1', webRtc, clock, logger });
  const parts = {
    callingLimits: options.callingLimits ?? NO_CALLING_LIMITS,
    sip,
    trunkTargets: anyTrunkTarget,
    phones,
    mediaPlane,
    secrets,
    registry,
    feed,
    recordings,
    transcripts,
    speeches,
    sounds,
    onReferral: async () => 603,
    readDialedNumber: () => null,
    quality: { watch: () => ({ end: async () => {} }) },
    clock,
    logger,
  };
  const dialer = createDialer({
    ...parts,
    recognition,
    listening,
    sql: dialerSql,
    actors: createCallActors({
      ...parts,
      sql: actorsSql,
      deliverer,
      trunks: { dialing: everyGateway },
      onMeasured() {},
      recordingsDir: '/recordings',
      sealingKeys: createSealingKeys(null),
    }),
    trunkWatch: {
      isDown: ({ id }) => downTrunks.has(id),
      dialing: everyGateway,
      registering: () => () => {},
      onGatewayBack() {},
      probeAll: async () => {},
      probe: async () => [],
      close() {},
    },
    allowCidrs: [],
    resolve: options.resolve ?? (async () => ['93.184.216.34']),
    node: 'node-1',
    boot: 'boot-1',
    nodes: options.nodes ?? noOtherNodes,
  });

  return {
    ...parts,
    caller,
    dialer,
    deliverer,
    downTrunks,
    hypotheses,
    listening,
    recognition,
    speech,
    request: (overrides: Partial<PlaceCallRequest> = {}): PlaceCallRequest => ({
      ...PLACEMENT,
      workspaceId: caller.workspaceId,
      userId: caller.userId,
      ...overrides,
    }),
    rows: () => sql<CallRow[]>`select * from calls where workspace_id = ${caller.workspaceId} order by created_at`,
  };
}

export type TestDialer = Awaited<ReturnType<typeof openDialer>>;

/** Simulates a peer that accepts every hang-up at once. */
export function acceptsHangup(leg: FakeLeg): void {
  leg.onHangup = () =>
    queueMicrotask(() => leg.emit({ type: 'leg.ended', by: 'local', hangupCause: 'NORMAL_CLEARING' }));
}
