import { Counter, Histogram, Registry } from 'prom-client';
import { isLegName, type LegEvent, type LegQuality } from '../../machines/events.ts';
import { requestScope } from '../../runtime/request-scope.ts';
import type { LiveCall } from '../call-registry.ts';
import type { CompletedRequest, Metrics } from './metrics.ts';
import type { ObservedLeg, Observer, PlacementOutcome } from './observer.ts';

/** Metrics that count events as they occur, and the registry of all metrics. */
export interface CountedMetrics extends Omit<Metrics, 'render'> {
  readonly registry: Registry;
  readonly observer: Observer;
}

const FAST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LAG_SECONDS = [0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30];

/** Creates the metrics. Label values are few and known in advance: no number, id or request path. */
export function createCountedMetrics(): CountedMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Histogram({
    name: 'tandem_http_request_duration_seconds',
    help: 'Time from the arrival of an HTTP request to the end of its response, streams included.',
    labelNames: ['method', 'route', 'status_class'],
    buckets: FAST_SECONDS,
    registers,
  });
  const placements = new Counter({
    name: 'tandem_placements_total',
    help: 'Requests to place a call, by outcome: placed, replayed, or the error code.',
    labelNames: ['outcome'],
    registers,
  });
  const attempts = new Counter({
    name: 'tandem_call_attempts_total',
    help: 'Calls that were admitted.',
    labelNames: ['direction'],
    registers,
  });
  const answers = new Counter({
    name: 'tandem_call_answers_total',
    help: 'Calls that both parties answered. Divided by the attempts, it is the answer-seizure ratio.',
    labelNames: ['direction'],
    registers,
  });
  const endings = new Counter({
    name: 'tandem_calls_ended_total',
    help: 'Calls that ended, by final state and hang-up cause.',
    labelNames: ['state', 'hangup_cause'],
    registers,
  });
  const firstInvite = new Histogram({
    name: 'tandem_call_first_invite_seconds',
    help: 'Time from the arrival of a placement to its first INVITE.',
    buckets: FAST_SECONDS,
    registers,
  });
  const answer = new Histogram({
    name: 'tandem_call_answer_seconds',
    help: 'Time from the arrival of a placement, or of the call of a peer, until both parties have answered.',
    buckets: [0.1, 0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120],
    registers,
  });
  const legAttempts = new Counter({
    name: 'tandem_leg_attempts_total',
    help: 'INVITEs sent or answered, and browsers that were rung.',
    labelNames: ['leg', 'transport', 'direction'],
    registers,
  });
  const legAnswers = new Counter({
    name: 'tandem_leg_answers_total',
    help: 'Legs that were answered.',
    labelNames: ['leg', 'transport', 'direction'],
    registers,
  });
  const packets = new Counter({
    name: 'tandem_rtp_packets_received_total',
    help: 'RTP packets received from the legs of finished calls.',
    labelNames: ['leg'],
    registers,
  });
  const lost = new Counter({
    name: 'tandem_rtp_packets_lost_total',
    help: 'RTP packets that the legs of finished calls sent and that never arrived.',
    labelNames: ['leg'],
    registers,
  });
  const jitter = new Histogram({
    name: 'tandem_rtp_jitter_seconds',
    help: 'Interarrival jitter (RFC 3550) of each leg of a finished call.',
    labelNames: ['leg'],
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2],
    registers,
  });
  const mos = new Histogram({
    name: 'tandem_rtp_mos',
    help: 'Estimated listening quality (ITU-T G.107), 1 to 4.5, of each leg of a finished call.',
    labelNames: ['leg'],
    buckets: [1.5, 2, 2.5, 3, 3.25, 3.5, 3.75, 4, 4.1, 4.2, 4.3, 4.4, 4.5],
    registers,
  });
  const transcripts = new Histogram({
    name: 'tandem_stt_final_lag_seconds',
    help: 'Time from the end of speech in live audio to its final transcript.',
    buckets: LAG_SECONDS,
    registers,
  });
  const speech = new Histogram({
    name: 'tandem_tts_first_byte_seconds',
    help: 'Time from a synthesis request to its first audio.',
    buckets: FAST_SECONDS,
    registers,
  });
  const deliveries = new Counter({
    name: 'tandem_deliveries_total',
    help: 'Attempts to deliver a callback or webhook: delivered, retry (repeated later), failed or gone (both final).',
    labelNames: ['kind', 'outcome'],
    registers,
  });
  const media = new Counter({
    name: 'tandem_media_sessions_refused_total',
    help: 'Media sessions that could not be opened, for want of ports or of a worker with time.',
    registers,
  });

  // Start at 0: a series that appears with its first event hides that event from `rate` and `increase`.
  for (const direction of ['outbound', 'inbound']) {
    attempts.inc({ direction }, 0);
    answers.inc({ direction }, 0);
  }
  for (const outcome of WATCHED_OUTCOMES) placements.inc({ outcome }, 0);
  for (const kind of ['callback', 'webhook']) {
    for (const outcome of ['delivered', 'retry', 'failed', 'gone']) deliveries.inc({ kind, outcome }, 0);
  }

  /** Placements whose first INVITE is not sent yet, by call. */
  const uninvited = new Map<string, number>();

  function callStarted(call: LiveCall): void {
    const { callId } = call.row;
    const direction = call.inbound === null ? 'outbound' : 'inbound';
    const arrivedMs = requestScope.getStore()?.arrivedMs ?? performance.now();
    attempts.inc({ direction });
    if (direction === 'outbound') uninvited.set(callId, arrivedMs);
    call.actor.on('moved', ({ move }) => {
      if (move.event !== 'call.bridged') return;
      answers.inc({ direction });
      answer.observe((performance.now() - arrivedMs) / 1_000);
    });
    void call.settled.then(() => {
      uninvited.delete(callId);
      const { outcome, report } = call.actor.getSnapshot().context;
      endings.inc({ state: outcome?.state ?? 'failed', hangup_cause: outcome?.hangupCause ?? 'none' });
      for (const [leg, quality] of Object.entries(report?.quality ?? {})) measured(roleOf(leg), quality);
    });
  }

  function measured(leg: string, quality: LegQuality | null): void {
    if (quality === null) return;
    packets.inc({ leg }, quality.packets_received);
    lost.inc({ leg }, Math.max(0, quality.packets_lost));
    if (quality.packets_received > 0) jitter.observe({ leg }, quality.jitter_ms / 1_000);
    if (quality.mos !== null) mos.observe({ leg }, quality.mos);
  }

  function legStarted({ callId, leg, transport, direction }: ObservedLeg): (event: LegEvent) => void {
    const labels = { leg: roleOf(leg), transport, direction };
    legAttempts.inc(labels);
    const arrivedMs = uninvited.get(callId);
    uninvited.delete(callId);
    // A browser agent gets no INVITE. The customer's INVITE follows only after the agent answers, so do not measure it.
    if (arrivedMs !== undefined && transport === 'sip') firstInvite.observe((performance.now() - arrivedMs) / 1_000);
    return (event) => {
      if (event.type === 'leg.answered') legAnswers.inc(labels);
    };
  }

  return {
    registry,
    contentType: registry.contentType,
    requestCompleted({ method, route, status, durationMs }: CompletedRequest) {
      const labels = { method, route, status_class: `${Math.floor(status / 100)}xx` };
      requests.observe(labels, durationMs / 1_000);
    },
    observer: {
      placementStarted: () => (outcome) => placements.inc({ outcome }),
      callStarted,
      legStarted,
      mediaStarted: () => (state) => {
        if (state === 'refused') media.inc();
      },
      utteranceRecognised: (lagMs) => transcripts.observe(lagMs / 1_000),
      speechStarted: (firstByteMs) => speech.observe(firstByteMs / 1_000),
      deliveryAttempted: (labels) => deliveries.inc({ ...labels }),
    },
  };
}

/** Outcomes that `ops/prometheus/alerts.yml` uses, and the successful ones. */
const WATCHED_OUTCOMES: readonly PlacementOutcome[] = [
  'placed',
  'replayed',
  'failed',
  'no_free_channel',
  'CARRIER_LINE_DOWN',
  'C2C_NOT_CONFIGURED',
  'C2C_OUTCOME_UNKNOWN',
];

/** Ids of further legs would create one series each. */
function roleOf(leg: string): string {
  return isLegName(leg) ? leg : 'further';
}
