import type { Tx } from '../database.ts';
import type { CallEventRow, CallMove, CallRow } from './call-row.ts';
import { emitWebhookEvent, subscribersOf } from './webhook-deliveries.ts';
import type { CallWebhookEvent } from './webhook-events.ts';
import type { WebhookRow } from './webhooks.ts';

/** Webhook events by events of the call's log, which has more. */
const NEWS: Readonly<Record<string, CallWebhookEvent>> = {
  'call.initiated': 'call.initiated',
  'agent.ringing': 'call.ringing',
  'customer.ringing': 'call.ringing',
  'customer.early_media': 'call.ringing',
  'agent.answered': 'call.answered',
  'call.bridged': 'call.bridged',
  'call.completed': 'call.completed',
  'call.not_answered': 'call.not_answered',
  'call.failed': 'call.failed',
  'call.temporaryfailed': 'call.temporaryfailed',
};

type Subject = Pick<CallRow, 'callId' | 'workspaceId' | 'referenceId' | 'direction' | 'metadata' | 'legs'>;

/** Webhooks that subscribe to these moves, for `emitCallNews`. */
export async function newsSubscribers(
  tx: Tx,
  { workspaceId }: Subject,
  moves: readonly Pick<CallMove, 'event'>[],
): Promise<WebhookRow[]> {
  const events = moves.flatMap(({ event }) => NEWS[event] ?? []);
  return await subscribersOf(tx, { workspaceId, events });
}

/** Reports stored events to the call's webhooks, as `emitWebhookEvent` does. `call.legs` are those before them. */
export async function emitCallNews(
  tx: Tx,
  call: Subject,
  { events, subscribers }: { events: readonly CallEventRow[]; subscribers: readonly WebhookRow[] },
): Promise<string[]> {
  if (subscribers.length === 0) return [];
  const { callId, workspaceId } = call;
  const ids: string[] = [];
  let hasCustomerRung = call.legs.some(({ legId, state }) => legId === 'customer' && state !== 'dialing');
  for (const { event, eventId, sequence, state, leg, sipStatus, hangupCause, at } of events) {
    const news = NEWS[event];
    if (news === undefined) continue;
    // Many carriers send early media without ringing, others both.
    if (event === 'customer.early_media' && hasCustomerRung) continue;
    hasCustomerRung ||= event === 'customer.ringing';
    const data = {
      call_id: callId,
      reference_id: call.referenceId,
      sequence,
      state,
      direction: call.direction,
      leg: leg ?? legOf(event),
      sip_status: sipStatus,
      hangup_cause: hangupCause,
      metadata: call.metadata,
    };
    ids.push(
      ...(await emitWebhookEvent(tx, {
        workspaceId,
        callId,
        event: news,
        eventId,
        data,
        now: at,
        subscribers,
      })),
    );
  }
  return ids;
}

function legOf(event: string): 'agent' | 'customer' | null {
  const leg = event.split('.', 1)[0];
  return leg === 'agent' || leg === 'customer' ? leg : null;
}
