import { randomUUID } from 'node:crypto';
import type { AskRule, InboundDecision } from '../storage/queries/inbound-rules.ts';
import { callbackSecretContext } from '../storage/secret-contexts.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { Resolve } from './callbacks/dns-resolve.ts';
import type { Cidr } from './callbacks/public-address.ts';
import { safePost } from './callbacks/safe-request.ts';
import { signCallback } from './callbacks/signature.ts';

export interface InboundQuestionOptions {
  secrets: SecretBox;
  /** Private networks that questions may be sent to, as for callbacks. */
  allowCidrs: readonly Cidr[];
  resolve?: Resolve;
  /** Throws if the response is not a decision. */
  readAnswer: (answer: unknown) => InboundDecision;
  /** Milliseconds since the Unix epoch. Default: the system clock. */
  now?: () => number;
  /** Default: 3,000. */
  timeoutMs?: number;
}

export interface AskedCall {
  workspaceId: string;
  trunkId: string;
  /** The rented number, +E.164. */
  did: string;
  /** +E.164. Null if the caller withheld it. */
  from: string | null;
}

export type QuestionFault = 'timeout' | 'not_reached' | 'url_refused' | 'status_not_2xx' | 'invalid_answer';

export type QuestionResult = { decision: InboundDecision; fault: null } | { decision: null; fault: QuestionFault };

const TIMEOUT_MS = 3_000;
const MOST_ANSWER_BYTES = 16_384;

/**
 * Sends `{event: "call.inbound", id, created_at, data: {from, to, outbound_trunk_id}}`, signed like callbacks, and
 * reads the decision from the response. Never rejects.
 */
export async function askAboutCall(
  { url, secretSealed }: AskRule,
  call: AskedCall,
  { signal, ...options }: InboundQuestionOptions & { signal: AbortSignal },
): Promise<QuestionResult> {
  const { secrets, allowCidrs, resolve, readAnswer, now = Date.now, timeoutMs = TIMEOUT_MS } = options;
  const nowMs = now();
  const id = `ask_${randomUUID()}`;
  const data = { from: call.from, to: call.did, outbound_trunk_id: call.trunkId };
  const body = JSON.stringify({ event: 'call.inbound', id, created_at: new Date(nowMs).toISOString(), data });
  const secret = secrets.open(Buffer.from(secretSealed, 'base64'), callbackSecretContext(call.workspaceId));
  const signature = signCallback({ secret, webhookId: id, timestampS: Math.floor(nowMs / 1000), rawBody: body });
  const result = await safePost({
    ...{ url, body, allowCidrs, signal, timeoutMs, answerBytes: MOST_ANSWER_BYTES },
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'Tandem-Webhooks/1',
      ...signature,
    },
    ...(resolve && { resolve }),
  });
  if (result.kind === 'failed') return { decision: null, fault: faultOf(result.failure) };
  if (result.status < 200 || result.status > 299) return { decision: null, fault: 'status_not_2xx' };
  try {
    return { decision: readAnswer(JSON.parse(result.body ?? '')), fault: null };
  } catch {
    return { decision: null, fault: 'invalid_answer' };
  }
}

function faultOf(failure: string): QuestionFault {
  if (failure === 'timeout' || failure === 'url_refused') return failure;
  return failure === 'protocol_error' ? 'invalid_answer' : 'not_reached';
}
