import { OPEN_TALK, type Talk } from '../machines/call-control.ts';
import type { MediaCommand } from '../machines/call-events.ts';
import type { LegId, LegName } from '../machines/events.ts';
import type { HeardParty, LoopedSound, Routing } from '../media/media-plane.ts';

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

/**
 * Who hears whom while they talk. Third parties are recorded with the customer, and supervisors with the agent, while
 * everybody hears them.
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
    hears: Object.fromEntries(parties.map((leg) => [leg, heardBy(leg, parties, talk)])),
    // A supervisor who only listens may have a phone that sends nothing.
    watched: parties.filter((leg) => !isHeld(leg, talk) && talk.guests[leg] !== 'listen'),
    recordedBeside,
    // A transcript has what all parties hear.
    tapMuted: Object.keys(talk.guests).filter((leg) => talk.guests[leg] !== null && talk.guests[leg] !== 'barge'),
  };
}

/** The target of a blind transfer has its place from its first word on; one that is consulted first may not get it. */
function placeOnRecording(leg: LegId, { standIns, transfer }: Talk): LegName | undefined {
  return transfer?.mode === 'blind' && transfer.target === leg ? transfer.place : standIns[leg];
}

function heardBy(leg: LegId, parties: readonly LegId[], talk: Talk): Routing['hears'][string] {
  if (isHeld(leg, talk)) return talk.held[leg] === 'music' ? 'hold-music' : 'silence';
  const heard: HeardParty[] = parties
    .filter((other) => other !== leg && !talk.muted[other] && !isHeld(other, talk) && isMeantFor(leg, other, talk))
    .map((party) => ({ party }));
  // Silence rather than nothing: many phones end a call without packets.
  return heard.length === 0 ? soundFor(leg, talk) : heard;
}

/** What a leg hears that hears no other: who waits for a transfer is told so. */
function soundFor(leg: LegId, { transfer }: Talk): LoopedSound {
  if (leg === transfer?.staying) return 'hold-music';
  return leg === transfer?.leaving ? 'ringback' : 'silence';
}

function isHeld(leg: LegId, talk: Talk): boolean {
  return (talk.held[leg] ?? null) !== null;
}

/** Whether what `speaker` says is meant for `listener`: always, unless it is a supervisor, or a transfer keeps them apart. */
function isMeantFor(listener: LegId, speaker: LegId, talk: Talk): boolean {
  const { guests, standIns } = talk;
  const mode = guests[speaker] ?? 'barge';
  if (mode === 'whisper') return (standIns[listener] ?? listener) === 'agent';
  return mode === 'barge' && !areApart(listener, speaker, talk);
}

/** The leg that leaves and its successor talk alone. Supervisors hear both sides, and both hear them. */
function areApart(listener: LegId, speaker: LegId, { transfer, guests }: Talk): boolean {
  const isSupervised = (guests[listener] ?? null) !== null || (guests[speaker] ?? null) !== null;
  if (transfer === null || isSupervised) return false;
  const consults = (leg: LegId) => leg === transfer.leaving || leg === transfer.target;
  return consults(listener) !== consults(speaker);
}

export function routingOf(path: Path): Routing {
  return ROUTINGS[path];
}
