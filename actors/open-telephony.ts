import type { InspectionEvent } from 'xstate';
import type { ListeningPlane } from '../media/listening-plane.ts';
import type { MediaPlane } from '../media/media-plane.ts';
import type { WebRtcPlane } from '../media/webrtc/webrtc-plane.ts';
import type { Clock } from '../runtime/clock.ts';
import type { SealingKeys } from '../runtime/sealed-file/format.ts';
import type { SipGateway } from '../sip/sip-gateway.ts';
import type { SpeechEngines } from '../speech/open-speech-engines.ts';
import { readScript } from '../speech/text/read-script.ts';
import { canReachRecordingsOf } from '../storage/data-folder.ts';
import type { Storage } from '../storage/open-storage.ts';
import type { PlacementLimits } from '../storage/queries/call-admission.ts';
import type { CallingLimits } from '../storage/queries/calling-rules.ts';
import type { InboundDecision } from '../storage/queries/inbound-rules.ts';
import { createCallActors } from './call.actor.ts';
import { createCallFeed } from './call-feed.ts';
import { openCallQualityLog } from './call-quality.ts';
import { type CallRegistry, createCallRegistry } from './call-registry.ts';
import { createCallSoundDesk } from './call-sound.ts';
import { createCallSpeechDesk } from './call-speech.ts';
import { createTranscriptDesk } from './call-transcript.ts';
import { presentCallEvent } from './call-view.ts';
import type { Resolve } from './callbacks/callback-url.ts';
import type { Deliverer } from './callbacks/deliverer.ts';
import type { Cidr } from './callbacks/public-address.ts';
import { createCluster } from './cluster/cluster.ts';
import { createClusterDialer } from './cluster/cluster-dialer.ts';
import { createClusterPhones } from './cluster/cluster-phones.ts';
import { createDialer, type NodeDialer } from './dialer.actor.ts';
import type { Dialer } from './dialer.ts';
import { takeInboundCalls } from './inbound-calls.ts';
import { createLiveCalls } from './live/live-calls.actor.ts';
import type { LiveCalls } from './live/live-calls.ts';
import type { Logger } from './logger.ts';
import { collectNumberRent } from './number-rent.ts';
import { createNumberVerifier } from './number-verifier.actor.ts';
import type { NumberVerifier } from './number-verifier.ts';
import { observeDialer, observePhones, observeRegistry } from './observability/observed-ports.ts';
import type { Observer } from './observability/observer.ts';
import { createPhoneDesk } from './phones/phone-desk.actor.ts';
import type { PhoneDesk } from './phones/phone-desk.ts';
import { type ReconcileOptions, reconcile } from './reconcile.ts';
import { createRecordingDesk } from './recording.actor.ts';
import { createRecordingExporter } from './recordings/recording-exporter.ts';
import { createRecordingLibrary } from './recordings/recording-library.actor.ts';
import type { RecordingLibrary } from './recordings/recording-library.ts';
import { expireRecordings } from './recordings/retention.ts';
import type { ServiceDns } from './service-dns.ts';
import { registerTrunks } from './trunk-registrar.ts';
import { createTrunkTargets } from './trunk-targets.actor.ts';
import type { TrunkTargets } from './trunk-targets.ts';
import { type TrunkWatch, watchTrunks } from './trunk-watch.ts';
import type { VoiceDesk } from './voices/voice-desk.ts';

export interface OpenTelephonyOptions {
  storage: Storage;
  sip: SipGateway;
  mediaPlane: MediaPlane;
  webRtc: WebRtcPlane;
  listening: ListeningPlane;
  engines: SpeechEngines;
  voices: Pick<VoiceDesk, 'resolve'>;
  deliverer: Deliverer;
  sealingKeys: SealingKeys;
  callingLimits: CallingLimits;
  /** By plan of the workspace. */
  placementsPerMinute: PlacementLimits;
  /** Parses the response of an inbound rule's URL. Throws if it is not a decision. */
  readInboundAnswer: (answer: unknown) => InboundDecision;
  /** Longest retention of recordings, in days. 0: the workspace decides. */
  recordingDays: number;
  /** Private networks that callbacks may be sent to. */
  allowCidrs: readonly Cidr[];
  /** Private networks that trunks of every workspace may connect to. */
  trunkAllowCidrs: readonly Cidr[];
  /** As in `DialerOptions`. */
  readDialedNumber: (dialed: string) => string | null;
  /** Resolves the hosts of callbacks and trunks. Default: DNS. */
  resolve?: Resolve;
  /** Queries NAPTR and SRV records of trunks. Default: DNS. */
  services?: ServiceDns;
  observer: Observer;
  clock: Clock;
  logger: Logger;
  inspect?: (event: InspectionEvent) => void;
}

export interface Telephony extends AsyncDisposable {
  /** Covers all nodes. */
  readonly dialer: Dialer;
  readonly liveCalls: LiveCalls;
  /** Covers this node alone. */
  readonly ownDialer: NodeDialer;
  readonly phones: PhoneDesk;
  readonly numberVerifier: NumberVerifier;
  readonly registry: CallRegistry;
  readonly trunkWatch: TrunkWatch;
  readonly trunkTargets: TrunkTargets;
  readonly recordings: RecordingLibrary;
  /** Takes no more calls. Those of this node, and those of its phones, continue for up to `graceMs`. */
  drain(graceMs: number): Promise<void>;
}

/**
 * Opens calls, recordings, transcripts, trunks and number rent. Settles the calls of earlier boots first, and later
 * those of other nodes whose lease has expired.
 */
export async function openTelephony(options: OpenTelephonyOptions): Promise<Telephony> {
  const { storage, engines, inspect, resolve, services, observer, ...given } = options;
  const { folder, sql, objects, secrets, nodes } = storage;
  const { recognition, synthesis } = engines;
  const shared = { ...folder, ...given, sql, objects, secrets, nodes };
  await using opening = new AsyncDisposableStack();
  const { logger, clock } = given;
  const cluster = createCluster({ nodes, openRelay: storage.openRelay, clock, logger });
  opening.defer(() => cluster.close());
  const exporter = createRecordingExporter({ keys: given.sealingKeys, logger: given.logger });
  opening.defer(() => exporter.close());
  const recordings = createRecordingDesk({ ...shared, exporter });
  opening.defer(() => recordings.close());
  const transcripts = createTranscriptDesk({
    ...{ ...shared, recognition },
    onHypothesis: (call, hypothesis) => liveCalls.publishHypothesis(call, hypothesis),
  });
  opening.defer(() => transcripts.close());
  const speeches = createCallSpeechDesk({ ...shared, synthesis, readScript });
  const sounds = createCallSoundDesk({ ...shared, synthesis, readScript, ...(resolve && { resolve }) });
  const { boot } = folder;
  const ownPhones = createPhoneDesk({ ...given, boot });
  const phones = observePhones(createClusterPhones({ local: ownPhones, cluster, nodes, sql, logger }), observer);
  const trunkTargets = createTrunkTargets({
    sql,
    allowCidrs: given.trunkAllowCidrs,
    ...(resolve && { resolve }),
    ...(services && { services }),
  });
  const quality = openCallQualityLog(shared);
  opening.use(quality);
  const parts = {
    ...{ ...shared, trunkTargets, recordings, transcripts, speeches, phones, sounds, quality },
    registry: observeRegistry(createCallRegistry(), observer),
    feed: createCallFeed({
      ...shared,
      onPublished(callId, event) {
        cluster.publish(callId, event);
        liveCalls.changed(callId);
      },
    }),
  };
  const liveCalls = createLiveCalls({ ...parts, cluster });
  opening.use(liveCalls);
  const trunkWatch = watchTrunks(parts);
  opening.defer(() => trunkWatch.close());
  const actors = createCallActors({
    ...{ ...parts, trunks: trunkWatch, onMeasured: liveCalls.measured, ...(inspect && { inspect }) },
    onReferral: (referral, from) => dialer.refer(referral, from),
  });
  const settle = async (lost: Pick<ReconcileOptions, 'lost' | 'seenAt' | 'recordingsDir'>) =>
    void (await reconcile({
      ...{ ...parts, ...lost, owner: folder, now: new Date(parts.clock.now()) },
      publish: (callId, event) => parts.feed.publish(callId, presentCallEvent(event)),
    }));
  const { node, boot: exceptBoot } = folder;
  await settle({ lost: { node, exceptBoot }, seenAt: nodes.previousSeenAt, recordingsDir: null });
  nodes.onLost(async (lost) => {
    const recordingsDir = (await canReachRecordingsOf(lost)) ? lost.recordingsDir : 'unreachable';
    await settle({ lost, seenAt: lost.seenAt, recordingsDir });
  });
  const registrar = registerTrunks({ ...parts, trunks: trunkWatch });
  opening.defer(() => registrar.close());
  const numberRent = collectNumberRent(parts);
  opening.defer(() => numberRent.close());
  const dialer = observeDialer(
    createDialer({ ...parts, recognition, actors, trunkWatch, ...(resolve && { resolve }) }),
    observer,
  );
  const numberVerifier = createNumberVerifier({ ...parts, trunks: trunkWatch });
  opening.use(numberVerifier);
  takeInboundCalls({
    ...parts,
    dialer,
    numberVerifier,
    readAnswer: given.readInboundAnswer,
    ...(resolve && { resolve }),
  });
  const retention = expireRecordings({ ...shared, mostDays: given.recordingDays });
  opening.defer(() => retention.close());
  const library = createRecordingLibrary({ ...shared, keys: shared.sealingKeys, exporter });
  const clusterDialer = createClusterDialer({ ...parts, local: dialer, cluster });
  const opened = opening.move();
  return {
    dialer: clusterDialer,
    liveCalls,
    ownDialer: dialer,
    phones,
    numberVerifier,
    registry: parts.registry,
    trunkWatch,
    trunkTargets,
    recordings: library,
    drain: async (graceMs) => void (await Promise.all([dialer.drain(graceMs), phones.drain(graceMs)])),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
