import { OPEN_TALK, type Talk } from '../machines/call-control.ts';
import type { MediaCommand } from '../machines/call-events.ts';
import type { LegName } from '../machines/events.ts';
import type { Routing } from '../media/media-plane.ts';

/** The two parties of a click-to-call, as the media plane names them. */
export const CALL_PARTIES = ['agent', 'customer'] as const;

/** The left channel is the agent's, the right one the customer's. */
export const RECORDING_CHANNELS = { agent: 0, customer: 1 } as const;

type Path = Extract<MediaCommand, { type: 'path' }>['path'];

/** Who hears whom in each phase of a call. Only a talk ends when a party falls silent. */
const ROUTINGS: Readonly<Record<Path, Routing>> = {
  idle: { hears: {}, watched: [] },
  ringback: { hears: { agent: 'ringback' }, watched: [] },
  'early-media': { hears: { agent: [{ party: 'customer' }] }, watched: [] },
  bridged: talkRouting(OPEN_TALK),
};

/** Who hears whom while they talk. */
export function talkRouting(talk: Talk): Routing {
  return {
    hears: { agent: heardBy('agent', talk), customer: heardBy('customer', talk) },
    watched: CALL_PARTIES.filter((leg) => talk.held[leg] === null),
  };
}

function heardBy(leg: LegName, { muted, held }: Talk): Routing['hears'][string] {
  if (held[leg] !== null) return held[leg] === 'music' ? 'hold-music' : 'silence';
  const other = leg === 'agent' ? 'customer' : 'agent';
  // Silence rather than nothing: many phones end a call without packets.
  return muted[other] || held[other] !== null ? 'silence' : [{ party: other }];
}

export function routingOf(path: Path): Routing {
  return ROUTINGS[path];
}
