import { partyText } from '../text/call-words.ts';
import { type Call, type Leg, legOf } from './call-data.ts';

type Parties = Pick<Call, 'legs' | 'agent_number' | 'customer_number'>;

/** Number of a party, or its browser. */
export function partyName(call: Parties, role: 'agent' | 'customer'): string {
  const leg = legOf(call, role);
  if (leg !== undefined) return endpointName(leg.endpoint);
  const number = role === 'agent' ? call.agent_number : call.customer_number;
  return number ?? (role === 'agent' ? partyText.browser : partyText.unknown);
}

export function endpointName({ type, number, user_id: userId }: Leg['endpoint']): string {
  if (type === 'webrtc') return typeof userId === 'number' ? partyText.browserOf(userId) : partyText.browser;
  return number ?? partyText.hidden;
}
