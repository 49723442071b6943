import { isIP } from 'node:net';
import { type ErrorCode, TandemError } from '../machines/errors.ts';
import type { HangupCause } from '../machines/events.ts';
import type { InboundCall, SipGateway } from '../sip/sip-gateway.ts';
import { readTrunkUri } from '../sip/trunk.ts';
import type { Sql } from '../storage/database.ts';
import { type CalledNumber, type ForwardRule, findCalledNumbers } from '../storage/queries/inbound-rules.ts';
import { gatewaysOf } from '../storage/queries/trunk-gateways.ts';
import { createDnsResolve, type Resolve } from './callbacks/dns-resolve.ts';
import type { NodeDialer } from './dialer.actor.ts';
import type { Logger } from './logger.ts';

export interface InboundCallsOptions {
  sip: SipGateway;
  sql: Sql;
  dialer: Pick<NodeDialer, 'receive'>;
  /** Looks up the hosts of trunks; default: DNS. */
  resolve?: Resolve;
  logger: Logger;
}

/**
 * Takes the calls of peers: each is for a rented number, comes from an address of a gateway of the number's trunk, and is refused or
 * connected by the number's rule.
 */
export function takeInboundCalls({
  sip,
  sql,
  dialer,
  resolve = createDnsResolve(),
  logger,
}: InboundCallsOptions): void {
  async function take(call: InboundCall): Promise<void> {
    const number = await calledNumber(call);
    if (number === null) return call.refuse('UNALLOCATED_NUMBER');
    const { inbound: rule, workspaceId, trunkId, e164: did } = number;
    if (rule === null) return call.refuse('NO_USER_RESPONSE');
    if (rule.action === 'reject') return call.refuse('CALL_REJECTED');
    const caller = e164Of(call.caller);
    // There is nobody to name in the call, nor to call back.
    if (caller === null) return call.refuse('FACILITY_REJECTED');
    call.ring();
    await dialer.receive({ ...placementOf(rule), workspaceId, trunkId, did, customerNumber: caller }, call);
  }

  /** Null for a number that is not rented, and for one whose trunk is elsewhere: strangers learn nothing of either. */
  async function calledNumber(call: InboundCall): Promise<CalledNumber | null> {
    const e164 = e164Of(call.called);
    const numbers = e164 === null ? [] : await findCalledNumbers(sql, [e164]);
    for (const number of numbers) {
      for (const { sipUri } of gatewaysOf(number.trunk)) {
        if (await isAddressOf(readTrunkUri(sipUri).host, call.source.host)) return number;
      }
    }
    return null;
  }

  async function isAddressOf(trunkHost: string, source: string): Promise<boolean> {
    const host = trunkHost.replace(/^\[|\]$/g, '');
    if (isIP(host) !== 0) return host === source;
    if (/^localhost$/i.test(host)) return source === '127.0.0.1' || source === '::1';
    const addresses = await resolve(host).catch((): readonly string[] => []);
    return addresses.includes(source);
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

/** What a caller is told of a refusal; of all others, that it may be tried again later. */
const CAUSE_OF: Partial<Record<ErrorCode, HangupCause>> = {
  RECHARGE_REQUIRED: 'FACILITY_REJECTED',
  destination_not_allowed: 'FACILITY_REJECTED',
  no_free_channel: 'SWITCH_CONGESTION',
  SHUTTING_DOWN: 'SYSTEM_SHUTDOWN',
};

/** A number with its country code; carriers leave out the plus. */
function e164Of(user: string): string | null {
  const digits = /^\+?([1-9]\d{6,14})$/.exec(user)?.[1];
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
