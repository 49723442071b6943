import type { LegEvent } from '../../machines/events.ts';
import type { DialRequest, LegDialog, SipGateway, TrunkEndpoint } from '../../sip/sip-gateway.ts';
import { EventLog } from '../softphone/event-log.ts';

export interface DialedLeg {
  leg: LegDialog;
  log: EventLog<LegEvent>;
  controller: AbortController;
  over: () => Promise<LegEvent>;
}

export function trunkOf(sipUri: string, changes: Partial<TrunkEndpoint> = {}): TrunkEndpoint {
  return {
    sipUri,
    transport: 'udp',
    username: null,
    password: null,
    codecs: ['PCMU', 'PCMA'],
    mediaEncryption: 'none',
    ...changes,
  };
}

export function dialLeg(gateway: SipGateway, request: Partial<DialRequest> & { trunk: TrunkEndpoint }): DialedLeg {
  const log = new EventLog<LegEvent>();
  const controller = new AbortController();
  const leg = gateway.dial({
    callerId: '+918000000001',
    calledNumber: '+919876543210',
    localMedia: { host: '127.0.0.1', rtpPort: 40_000 },
    callId: 'call-1',
    leg: 'agent',
    signal: controller.signal,
    onEvent: (event) => log.add(event),
    ...request,
  });
  return { leg, log, controller, over: () => log.untilAny(isLast, 'last event') };
}

function isLast(event: LegEvent): boolean {
  return event.type === 'leg.refused' || event.type === 'leg.ended' || event.type === 'leg.lost';
}
