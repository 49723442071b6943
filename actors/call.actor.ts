import { createActor, type InspectionEvent, type Observer } from 'xstate';
import { callMachine } from '../machines/call.machine.ts';
import { legMachine } from '../machines/leg.machine.ts';
import type { MediaPlane } from '../media/media-plane.ts';
import { type Clock, type Moment, momentOf } from '../runtime/clock.ts';
import type { SealingKeys } from '../runtime/sealed-file/format.ts';
import type { InboundCall, SipGateway } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import type { CallRow } from '../storage/queries/calls.ts';
import type { DialedTrunk } from '../storage/queries/trunks.ts';
import type { SecretBox } from '../storage/secrets.ts';
import { openCallControls } from './call-controls.ts';
import { type DialogPortOptions, dialogPort } from './call-dialog.ts';
import type { CallFeed } from './call-feed.ts';
import { fundedMs, fundingPort } from './call-funding.ts';
import { openCallJournal } from './call-journal.ts';
import { type MediaPortOptions, mediaPort } from './call-media.ts';
import type { CallQualityLog } from './call-quality.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import { settlementPort } from './call-settlement.ts';
import type { CallScripts, CallSpeechDesk } from './call-speech.ts';
import { type TranscriptDesk, transcriptPort } from './call-transcript.ts';
import { presentCallEvent } from './call-view.ts';
import type { Deliverer } from './callbacks/deliverer.ts';
import type { Logger } from './logger.ts';
import type { NodePhoneDesk } from './phones/phone-desk.actor.ts';
import type { RecordingDesk } from './recording.actor.ts';
import type { TrunkObserver } from './trunk-dialing.ts';
import type { TrunkTargets } from './trunk-targets.ts';

export interface CallActorsOptions {
  sql: Sql;
  mediaPlane: MediaPlane;
  sip: SipGateway;
  phones: Pick<NodePhoneDesk, 'dial'>;
  trunks: TrunkObserver;
  secrets: SecretBox;
  trunkTargets: TrunkTargets;
  registry: CallRegistry;
  quality: Pick<CallQualityLog, 'watch'>;
  feed: CallFeed;
  deliverer: Deliverer;
  recordings: RecordingDesk;
  transcripts: TranscriptDesk;
  speeches: CallSpeechDesk;
  onReferral: DialogPortOptions['onReferral'];
  onMeasured: MediaPortOptions['onMeasured'];
  recordingsDir: string;
  sealingKeys: SealingKeys;
  clock: Clock;
  logger: Logger;
  inspect?: Observer<InspectionEvent> | ((event: InspectionEvent) => void);
}

interface Admitted {
  at: Moment;
  heldNano: bigint;
  /** As the admission read it. Default: null. */
  trunk?: DialedTrunk | null;
  scripts: CallScripts;
  /** Inbound call; refused if it ends unanswered. Null or absent: an outbound call, which dials the customer. */
  inbound?: InboundCall | null;
}

/**
 * Connects the call machine to media, SIP, storage and delivery. `start` runs an admitted call and registers it; it
 * returns at once.
 */
export function createCallActors(options: CallActorsOptions): {
  start(row: CallRow, admitted: Admitted): LiveCall;
} {
  const { registry, recordings, transcripts, deliverer, feed, logger } = options;
  const machine = callMachine.provide({
    actors: {
      media: mediaPort(options),
      leg: legMachine.provide({ actors: { dialog: dialogPort(options) } }),
      transcript: transcriptPort(options),
      extendFunding: fundingPort(options),
      settle: settlementPort({
        ...options,
        onSettled({ call, event, delivery, webhookDeliveries }) {
          feed.publish(call.callId, presentCallEvent({ ...event, delivery }));
          if (delivery) void deliverer.enqueue(delivery.id);
          for (const id of webhookDeliveries) void deliverer.enqueue(id);
          const { recordingId, callId, workspaceId } = call;
          if (recordingId) recordings.store({ recordingId, callId, workspaceId });
        },
      }),
    },
  });

  return {
    start(row, { at: admittedAt, heldNano, trunk = null, scripts, inbound = null }) {
      const abort = new AbortController();
      const initiated = Promise.withResolvers<'initiated' | 'settled'>();
      const settled = Promise.withResolvers<void>();
      const guests: LiveCall['guests'] = new Map();
      const journal = openCallJournal({
        ...options,
        endpointOf: (legId) => guests.get(legId)?.endpoint ?? null,
        callId: row.callId,
        boot: row.ownerBoot,
        lastSequence: row.seq,
        signal: abort.signal,
        onCommitted(events) {
          for (const event of events) {
            feed.publish(row.callId, presentCallEvent(event));
            // The journal fails a transcript when the wallet is empty.
            if (event.event === 'transcript.failed') transcripts.stop(row.callId, event.detail ?? 'INTERNAL');
          }
          initiated.resolve('initiated');
        },
        onDeliveries(ids) {
          for (const id of ids) void deliverer.enqueue(id);
        },
        // Another boot of the server settles this call or already has. Further talk would not be billed.
        onLost: () => call.actor.send({ type: 'hangup.requested', reason: 'shutdown' }),
      });
      const actor = createActor(machine, {
        input: {
          callId: row.callId,
          agentRingTimeoutMs: row.agentRingTimeoutS * 1000,
          customerRingTimeoutMs: row.customerRingTimeoutS * 1000,
          maxDurationMs: row.maxDurationS * 1000,
          record: row.recordRequested,
          transcribe: row.transcribeRequested,
          announce: row.announceCharacters !== null,
          whisper: row.whisperCharacters !== null,
          onMachine: row.onMachine,
          fundedForMs: fundedMs(heldNano, row),
        },
        clock: options.clock,
        ...(options.inspect && { inspect: options.inspect }),
      });
      const controls = openCallControls({ actor, journal });
      const call: LiveCall = {
        row,
        admittedAt,
        actor,
        journal,
        abort,
        speech: options.speeches.of(scripts, { callId: row.callId, signal: abort.signal }),
        media: null,
        trunk,
        inbound,
        guests,
        sounds: new Map(),
        clearedAt: null,
        control: controls.request,
        requireTalk: controls.requireTalk,
        initiated: initiated.promise,
        settled: settled.promise,
      };
      actor.on('moved', ({ move }) => {
        journal.append(move);
        if (move.event === 'call.initiated') call.speech.prepare();
        if (move.event === 'customer.dialing' && row.transcribeRequested) void transcripts.preload();
      });
      const refuseCaller = () =>
        inbound?.refuse(actor.getSnapshot().context.outcome?.hangupCause ?? 'SWITCH_CONGESTION');
      inbound?.abandoned.addEventListener('abort', () => {
        if (actor.getSnapshot().status === 'active') actor.send({ type: 'hangup.requested', reason: 'caller' });
      });
      actor.on('clearing', () => {
        call.clearedAt ??= momentOf(options.clock);
        refuseCaller();
      });
      const finish = () => {
        refuseCaller();
        registry.remove(row.callId);
        controls.end();
        initiated.resolve('settled');
        settled.resolve();
      };
      actor.subscribe({
        complete: finish,
        error(error) {
          // A defect. The row stays unsettled until the next start of the server reconciles it.
          logger.error({ callId: row.callId, err: error }, 'call actor failed');
          finish();
        },
      });
      registry.add(call);
      actor.start();
      return call;
    },
  };
}
