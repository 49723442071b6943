import ipaddr from 'ipaddr.js';
import { type ErrorCode, TandemError } from '../machines/errors.ts';
import type { HangupCause } from '../machines/events.ts';
import { Gate, GateFullError } from '../runtime/gate.ts';
import { SharedLookups } from '../runtime/shared-lookups.ts';
import { DigestGuard } from '../sip/digest-guard.ts';
import type { InboundCall, SipGateway } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import {
  type CalledNumber,
  type ForwardRule,
  findCalledNumbers,
  hasInboundAccount,
  type InboundDecider,
  type InboundDecision,
  type InboundRule,
} from '../storage/queries/inbound-rules.ts';
import type { ClaimedNumber } from '../storage/queries/number-verifications.ts';
import { gatewaysOf } from '../storage/queries/trunk-gateways.ts';
import { callbackSecretContext, trunkInboundPasswordContext } from '../storage/secret-contexts.ts';
import type { Resolve } from './callbacks/dns-resolve.ts';
import type { NodeDialer } from './dialer.actor.ts';
import { type AskedCall, askAboutCall, type InboundQuestionOptions } from './inbound-question.ts';
import type { Logger } from './logger.ts';
import type { NodeNumberVerifier } from './number-verifier.actor.ts';
import { trunkMedia } from './trunk-dialing.ts';
import type { TrunkTarget, TrunkTargets } from './trunk-targets.ts';

export interface InboundCallsOptions extends Omit<InboundQuestionOptions, 'resolve'> {
  sip: SipGateway;
  sql: Sql;
  dialer: Pick<NodeDialer, 'receive'>;
  numberVerifier: Pick<NodeNumberVerifier, 'claimOf' | 'listen'>;
  trunkTargets: TrunkTargets;
  /** Resolves the hosts of decision URLs. Default: DNS. */
  resolve?: Resolve;
  logger: Logger;
}

/**
 * Takes inbound calls to rented numbers. A caller must come from an address of the number's trunk or authenticate with
 * its account. The number's rule then rejects or connects the call, or asks the integrator's URL. A call to a number
 * under verification goes to the verifier instead.
 */
export function takeInboundCalls(options: InboundCallsOptions): void {
  const { sip, sql, dialer, numberVerifier, trunkTargets, secrets, logger } = options;
  const questions = new Gate(MOST_QUESTIONS);
  const guard = new DigestGuard();
  /** By target in JSON. Shared, because anyone who knows a number can cause a look-up with each INVITE. */
  const locations = new SharedLookups((target) => trunkTargets.locate(JSON.parse(target)).catch(() => []));

  async function take(call: InboundCall): Promise<void> {
    const number = await calledNumber(call);
    if (number === null) return;
    if ('verificationId' in number) return await numberVerifier.listen(call, number);
    const { inbound: rule, workspaceId, trunkId, trunk, e164: did } = number;
    if (rule === null) return call.refuse('NO_USER_RESPONSE');
    if (rule.action === 'reject') return call.refuse('CALL_REJECTED');
    if (!call.offersAudio(trunkMedia(trunk))) {
      logger.warn({ workspaceId, trunkId }, 'inbound call refused: it offers no codec or encryption of its trunk');
      return call.refuse('INCOMPATIBLE_DESTINATION');
    }
    const caller = e164Of(call.caller);
    call.ring();
    const { decision, decidedBy } = await decide(rule, { workspaceId, trunkId, did, from: caller }, call);
    if (call.abandoned.aborted) return;
    if (decision.action === 'reject') return call.refuse('CALL_REJECTED');
    if (await isAnsweredByRule(decision)) {
      logger.warn({ workspaceId, trunkId }, 'inbound call refused: it is forwarded to a number that has a rule itself');
      return call.refuse('NO_ROUTE_DESTINATION');
    }
    const callback = callbackOf(decision, workspaceId);
    const placement = { ...placementOf(decision), ...callback, workspaceId, trunkId, did, customerNumber: caller };
    await dialer.receive({ ...placement, decidedBy }, call);
  }

  /** Prevents forwarding loops, in which each round is a call. */
  async function isAnsweredByRule({ endpoint }: ForwardRule): Promise<boolean> {
    if (endpoint.type !== 'phone') return false;
    const numbers = await findCalledNumbers(sql, [endpoint.number]);
    return numbers.some(({ inbound }) => inbound !== null && inbound.action !== 'reject');
  }

  async function decide(
    rule: Exclude<InboundRule, { action: 'reject' }>,
    asked: AskedCall,
    { abandoned }: InboundCall,
  ): Promise<{ decision: InboundDecision; decidedBy: InboundDecider }> {
    if (rule.action === 'forward') {
      return { decision: rule, decidedBy: { decided_by: 'rule', fault: null, after_ms: null } };
    }
    const startedAtMs = performance.now();
    const ask = () => askAboutCall(rule, asked, { ...options, signal: abandoned });
    const { decision, fault } = await questions.run(ask, { lane: asked.workspaceId }).catch((error: unknown) => {
      if (error instanceof GateFullError) return { decision: null, fault: 'too_many_questions' } as const;
      throw error;
    });
    const afterMs = Math.round(performance.now() - startedAtMs);
    if (fault !== null && !abandoned.aborted) {
      logger.warn({ workspaceId: asked.workspaceId, fault }, 'fallback for an inbound call: its URL did not decide');
    }
    const decidedBy = { decided_by: fault === null ? 'url' : 'fallback', fault, after_ms: afterMs } as const;
    return { decision: decision ?? rule.fallback, decidedBy };
  }

  function callbackOf({ callbackUrl = null, callbackSecretSealed = null }: ForwardRule, workspaceId: string) {
    if (callbackUrl === null || callbackSecretSealed === null) return { callbackUrl: null, callbackSecret: null };
    const sealed = Buffer.from(callbackSecretSealed, 'base64');
    return { callbackUrl, callbackSecret: secrets.open(sealed, callbackSecretContext(workspaceId)) };
  }

  /** Null: the call was refused or challenged. Strangers must not learn which numbers exist. */
  async function calledNumber(call: InboundCall): Promise<CalledNumber | ClaimedNumber | null> {
    const numbers = await numbersCalled(call);
    for (const number of numbers) if (await isFromTrunk(call, number)) return number;
    if (await hasInboundAccount(sql)) return await numberByPassword(call, numbers);
    call.refuse('UNALLOCATED_NUMBER');
    return null;
  }

  /**
   * The request URI names the number, or the Contact of a trunk that registers; then To names the number. Some accounts
   * are numbers themselves.
   */
  async function numbersCalled({ called, to }: InboundCall): Promise<(CalledNumber | ClaimedNumber)[]> {
    const numbers = to === called ? [] : await numbersWith(e164Of(to));
    const atContact = numbers.filter(({ trunk }) => trunk.contactUser === called);
    return atContact.length > 0 ? atContact : await numbersWith(e164Of(called));
  }

  async function numbersWith(e164: string | null): Promise<(CalledNumber | ClaimedNumber)[]> {
    if (e164 === null) return [];
    const rented = await findCalledNumbers(sql, [e164]);
    const claim = rented.length === 0 ? await numberVerifier.claimOf(e164) : null;
    return claim === null ? rented : [claim];
  }

  async function isFromTrunk(call: InboundCall, { trunk }: Pick<CalledNumber, 'trunk'>): Promise<boolean> {
    const { ownerWorkspaceId } = trunk;
    for (const { sipUri, transport } of gatewaysOf(trunk)) {
      const target: TrunkTarget = { sipUri, transport, ownerWorkspaceId };
      const hops = await locations.get(JSON.stringify(target));
      if (hops.some(({ address }) => isSameAddress(address, call.source.host))) return true;
    }
    return false;
  }

  /** Finds the number whose trunk account the call authenticates with. */
  async function numberByPassword<Called extends Pick<CalledNumber, 'trunk' | 'trunkId'>>(
    call: InboundCall,
    numbers: readonly Called[],
  ): Promise<Called | null> {
    let proved: Called | null = null;
    const verdict = await guard.check({
      authorization: call.authorization,
      method: 'INVITE',
      user: call.called,
      source: call.source.host,
      passwordOf(username) {
        proved = numbers.find(({ trunk }) => trunk.inboundUsername === username) ?? null;
        return proved && inboundPassword(proved);
      },
    });
    if (verdict === 'accepted') return proved;
    if (verdict === 'refused') call.refuse('FACILITY_REJECTED');
    else call.challenge(guard.challenge({ isStale: verdict === 'stale', source: call.source.host }));
    return null;
  }

  function inboundPassword({ trunk, trunkId }: Pick<CalledNumber, 'trunk' | 'trunkId'>): string | null {
    const sealed = trunk.inboundPasswordEncrypted;
    return sealed && secrets.open(sealed, trunkInboundPasswordContext(trunkId));
  }

  sip.onCall((call) => {
    take(call).catch((error) => {
      const code = error instanceof TandemError ? error.code : null;
      if (code === null) logger.error({ err: error }, 'inbound call could not be taken');
      else logger.warn({ code }, 'inbound call refused');
      call.refuse((code !== null && CAUSE_OF[code]) || 'NORMAL_TEMPORARY_FAILURE');
    });
  });
}

/** Concurrent questions. They precede checks of channels and wallets, so this limit bounds a flood of INVITEs. */
const MOST_QUESTIONS = { inAll: 200, perLane: 50, waiting: 0, waitingPerLane: 0 };

/** Hangup cause by refusal. All others mean that the caller may try again later. */
const CAUSE_OF: Partial<Record<ErrorCode, HangupCause>> = {
  RECHARGE_REQUIRED: 'FACILITY_REJECTED',
  destination_not_allowed: 'FACILITY_REJECTED',
  DESTINATION_BLOCKED: 'FACILITY_REJECTED',
  DAILY_SPEND_CAP_REACHED: 'FACILITY_REJECTED',
  no_free_channel: 'SWITCH_CONGESTION',
  SHUTTING_DOWN: 'SYSTEM_SHUTDOWN',
};

/** Compares addresses in any notation. A dual-stack socket reports IPv4 peers as ::ffff:a.b.c.d. */
function isSameAddress(one: string, other: string): boolean {
  if (!ipaddr.isValid(one) || !ipaddr.isValid(other)) return false;
  return ipaddr.process(one).toString() === ipaddr.process(other).toString();
}

/** Accepts numbers with country code but without the plus, or with the prefix 00 in its place, as carriers send them. */
function e164Of(user: string): string | null {
  const digits = /^(?:\+|00)?([1-9]\d{6,14})$/.exec(user)?.[1];
  return digits === undefined ? null : `+${digits}`;
}

function placementOf(rule: ForwardRule) {
  const { endpoint, ringTimeoutS, maxDurationS, record, transcribe, announce, voiceId } = rule;
  return {
    agentNumber: endpoint.type === 'phone' ? endpoint.number : null,
    agentUserId: endpoint.type === 'webrtc' ? endpoint.userId : null,
    agentRingTimeoutS: ringTimeoutS,
    // The caller only has to acknowledge.
    customerRingTimeoutS: 30,
    ...{ maxDurationS, record, transcribe, announce, voiceId, whisper: null },
  };
}
