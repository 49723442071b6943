import { isHeld, OPEN_TALK, type Talk } from '../machines/call-control.ts';
import type { MediaCommand } from '../machines/call-events.ts';
import type { LegId, LegName } from '../machines/events.ts';
import type { AudioSource, LoopedSound, PartyId, Routing } from '../media/media-plane.ts';

/** Parties of a click-to-call, by their names in the media plane. */
export const CALL_PARTIES = ['agent', 'customer'] as const;

/** The agent is on the left channel, the customer on the right. */
export const RECORDING_CHANNELS = { agent: 0, customer: 1 } as const;

type Path = Extract<MediaCommand, { type: 'path' }>['path'];

/** Audio routing in each phase of a call. Before the talk no party is watched, so silence does not end the call. */
const ROUTINGS: Readonly<Record<Path, Routing>> = {
  idle: { receives: {}, watched: [] },
  ringback: { receives: { agent: 'ringback' }, watched: [] },
  'early-media': { receives: { agent: [{ party: 'customer' }] }, watched: [] },
  bridged: talkRouting(OPEN_TALK),
};

/**
 * Audio routing of a talk. All parties hear third parties and supervisors. On the recording, third parties share the
 * customer's channel and supervisors the agent's.
 */
export function talkRouting(talk: Talk): Routing {
  const present = CALL_PARTIES.filter((leg) => !talk.left.includes(leg));
  const parties: LegId[] = [...present, ...Object.keys(talk.guests)];
  const recordedBeside: Record<LegId, 0 | 1> = {};
  for (const [leg, mode] of Object.entries(talk.guests)) {
    const place = placeOnRecording(leg, talk);
    if (place !== undefined) recordedBeside[leg] = RECORDING_CHANNELS[place];
    else if (mode === null) recordedBeside[leg] = RECORDING_CHANNELS.customer;
    else if (mode === 'barge') recordedBeside[leg] = RECORDING_CHANNELS.agent;
  }
  return {
    receives: Object.fromEntries(parties.map((leg) => [leg, sourcesFor(leg, parties, talk)])),
    // The phone of a listening supervisor may send nothing.
    watched: parties.filter((leg) => !isHeld(talk, leg) && talk.guests[leg] !== 'listen'),
    pressing: parties,
    recordedBeside,
    // Transcripts contain only what all parties hear.
    tapMuted: Object.keys(talk.guests).filter((leg) => talk.guests[leg] !== null && talk.guests[leg] !== 'barge'),
  };
}

/** The parties that hear a leg. */
export function listenersOf(leg: LegId, talk: Talk): PartyId[] {
  const { receives } = talkRouting(talk);
  const hears = (sources: Routing['receives'][string] = []) =>
    typeof sources !== 'string' && sources.some(({ party }) => party === leg);
  return Object.keys(receives).filter((listener) => hears(receives[listener]));
}

/**
 * The target of a blind transfer takes over its place on the recording at once. A consulted target may never get it.
 */
function placeOnRecording(leg: LegId, { standIns, transfer }: Talk): LegName | undefined {
  return transfer?.mode === 'blind' && transfer.target === leg ? transfer.place : standIns[leg];
}

function sourcesFor(leg: LegId, parties: readonly LegId[], talk: Talk): Routing['receives'][string] {
  if (isHeld(talk, leg)) return talk.held[leg] === 'music' ? 'hold-music' : 'silence';
  const sources: AudioSource[] = parties
    .filter((other) => other !== leg && !talk.muted[other] && !isHeld(talk, other) && isAudibleTo(leg, other, talk))
    .map((party) => ({ party }));
  // Silence instead of no packets, because many phones end a call without them.
  return sources.length === 0 ? soundFor(leg, talk) : sources;
}

/** Sound for a leg that hears no other leg: hold music or ringback during a transfer. */
function soundFor(leg: LegId, { transfer }: Talk): LoopedSound {
  if (leg === transfer?.staying) return 'hold-music';
  return leg === transfer?.leaving ? 'ringback' : 'silence';
}

/** Whether `listener` may hear `speaker`: yes, unless a supervisor mode or a transfer separates them. */
function isAudibleTo(listener: LegId, speaker: LegId, talk: Talk): boolean {
  const { guests, standIns } = talk;
  const mode = guests[speaker] ?? 'barge';
  if (mode === 'whisper') return (standIns[listener] ?? listener) === 'agent';
  return mode === 'barge' && !areSeparated(listener, speaker, talk);
}

/**
 * Whether a consultation before a transfer separates two legs: the leaving leg and its successor talk in private.
 * Supervisors hear both sides and both sides hear them.
 */
function areSeparated(listener: LegId, speaker: LegId, { transfer, guests }: Talk): boolean {
  const isSupervised = (guests[listener] ?? null) !== null || (guests[speaker] ?? null) !== null;
  if (transfer === null || isSupervised) return false;
  const consults = (leg: LegId) => leg === transfer.leaving || leg === transfer.target;
  return consults(listener) !== consults(speaker);
}

export function routingOf(path: Path): Routing {
  return ROUTINGS[path];
}
