import {
  type GuestRole,
  isLegName,
  type LegId,
  type LegName,
  type SupervisionMode,
  type Transfer,
  type TransferMode,
  type TransferRequester,
} from './events.ts';

/** What somebody may ask of a live call, and what it changes: plain data and pure functions. */

export type CallControl =
  /** The other party does not hear the leg. */
  | { type: 'mute'; leg: LegId }
  | { type: 'unmute'; leg: LegId }
  /**
   * The leg hears music or nothing and is not heard; its peer is told so (RFC 3264 §8.4). The machine notes in `from` what
   * a leg heard that is resumed.
   */
  | { type: 'hold'; leg: LegId; music: boolean }
  | { type: 'resume'; leg: LegId; from?: 'music' | 'silence' }
  /** Key presses to the leg; `digits` as `KeyPresses` of the media plane has them. */
  | { type: 'dtmf'; leg: LegId; digits: string; durationMs: number }
  /**
   * Plays a sound to legs, over what they hear. The media port has the sound under `playbackId`.
   * `characters` are those of a text, which are billed; null for an audio file.
   */
  | { type: 'play'; playbackId: string; legs: readonly LegId[]; isLooped: boolean; characters: number | null }
  /** Ends a sound that is being played. */
  | { type: 'play.stop'; playbackId: string }
  /** The recording goes on with silence. */
  | { type: 'recording.pause' }
  | { type: 'recording.resume' }
  /** Whom a supervisor is heard by from now on. The machine notes in `from` how it was. */
  | { type: 'supervise'; leg: LegId; mode: SupervisionMode; from?: SupervisionMode }
  /** Dials a leg, which takes the place of `leg` when it answers, or when the transfer is completed. */
  | { type: 'transfer'; leg: LegId; target: LegId; mode: TransferMode; requestedBy?: TransferRequester }
  /** Ends an attended transfer: the leg that consulted leaves. */
  | { type: 'transfer.complete' }
  /** Hangs up the target, and all is as before. */
  | { type: 'transfer.cancel' }
  /** Dials one more leg, which joins the talk when it answers. */
  | { type: 'leg.add'; leg: LegId; role: GuestRole; mode: SupervisionMode | null }
  /** Hangs up a leg that was added. */
  | { type: 'leg.drop'; leg: LegId };

/** What changes how the parties are connected, rather than who they are. */
export type TalkControl = Exclude<
  CallControl,
  { type: 'leg.add' | 'leg.drop' | 'transfer' | 'transfer.complete' | 'transfer.cancel' }
>;

/** How the parties are to be connected while they talk. A leg that was added and is not named is neither muted nor held. */
export interface Talk {
  muted: Readonly<Record<LegId, boolean>>;
  /** What a leg on hold hears; null while it is not. */
  held: Readonly<Record<LegId, 'music' | 'silence' | null>>;
  isRecordingPaused: boolean;
  /** Who else has answered; null in place of the mode for a third party. */
  guests: Readonly<Record<LegId, SupervisionMode | null>>;
  /** Which of agent and customer have left, because another leg takes their place. */
  left: readonly LegName[];
  /** The places that further legs have taken. */
  standIns: Readonly<Record<LegId, LegName>>;
  /** Null unless one is under way. */
  transfer: Transfer | null;
}

export const OPEN_TALK: Talk = {
  muted: { agent: false, customer: false },
  held: { agent: null, customer: null },
  isRecordingPaused: false,
  guests: {},
  left: [],
  standIns: {},
  transfer: null,
};

/** Why a control did not happen. */
export type ControlRefusal =
  /** The parties do not talk: they are not bridged yet, or not any more. */
  | 'CALL_NOT_LIVE'
  /** There is no such leg, or it has not answered yet. */
  | 'LEG_NOT_FOUND'
  /** The call has as many legs as one may have. */
  | 'TOO_MANY_LEGS'
  /** Another transfer is under way. */
  | 'TRANSFER_IN_PROGRESS'
  /** No transfer is under way, or not one that can be completed. */
  | 'TRANSFER_NOT_FOUND'
  /** The target has not answered yet. */
  | 'TRANSFER_NOT_ANSWERED'
  /** No media port is free for another leg. */
  | 'no_free_channel'
  /** The call is not being recorded. */
  | 'RECORDING_UNAVAILABLE'
  /** The peer of the leg has the call on hold, so that keys or a sound would not be heard. */
  | 'LEG_NOT_LISTENING'
  /** No such sound is being played, or not any more. */
  | 'PLAYBACK_NOT_FOUND'
  /** Too many key presses of the leg wait for their turn. */
  | 'CONTROL_BUSY'
  /** The media plane could not do it. */
  | 'INTERNAL';

export function talkAfter(talk: Talk, control: TalkControl): Talk {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return { ...talk, muted: { ...talk.muted, [control.leg]: control.type === 'mute' } };
    case 'hold':
    case 'resume':
      return { ...talk, held: { ...talk.held, [control.leg]: heldWith(control) } };
    case 'recording.pause':
    case 'recording.resume':
      return { ...talk, isRecordingPaused: control.type === 'recording.pause' };
    case 'supervise':
      return { ...talk, guests: { ...talk.guests, [control.leg]: control.mode } };
    case 'dtmf':
    case 'play':
    case 'play.stop':
      return talk;
  }
}

/** The control with what it changes, so that it can be undone. */
export function withPast(talk: Talk, control: TalkControl): TalkControl {
  if (control.type === 'supervise') {
    const from = talk.guests[control.leg];
    return from ? { ...control, from } : control;
  }
  const held = control.type === 'resume' ? talk.held[control.leg] : null;
  return control.type === 'resume' && held ? { ...control, from: held } : control;
}

/** With a leg that has answered. */
export function talkWith(talk: Talk, leg: LegId, mode: SupervisionMode | null): Talk {
  return { ...talk, guests: { ...talk.guests, [leg]: mode } };
}

/** Without a leg that was added. */
export function talkWithout(talk: Talk, leg: LegId): Talk {
  const without = <Value>(record: Readonly<Record<LegId, Value>>) =>
    Object.fromEntries(Object.entries(record).filter(([id]) => id !== leg));
  return { ...talk, muted: without(talk.muted), held: without(talk.held), guests: without(talk.guests) };
}

/** The legs that a control is for; none if it is for the call. */
export function legsOf(control: CallControl): readonly LegId[] {
  if (control.type === 'play') return control.legs;
  return 'leg' in control ? [control.leg] : [];
}

/** Whether a leg takes part in the talk. */
export function isTalking(talk: Talk, leg: LegId): boolean {
  return isLegName(leg) ? !talk.left.includes(leg) : Object.hasOwn(talk.guests, leg);
}

/** What undoes a control that did not happen; null where nothing is left of it. */
export function oppositeOf(control: TalkControl): TalkControl | null {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return { type: control.type === 'mute' ? 'unmute' : 'mute', leg: control.leg };
    case 'hold':
      return { type: 'resume', leg: control.leg };
    case 'resume':
      return { type: 'hold', leg: control.leg, music: control.from !== 'silence' };
    case 'recording.pause':
      return { type: 'recording.resume' };
    case 'recording.resume':
      return { type: 'recording.pause' };
    case 'supervise':
      return control.from === undefined ? null : { ...control, mode: control.from, from: control.mode };
    case 'dtmf':
    case 'play':
    case 'play.stop':
      return null;
  }
}

/** Whether the talk is as the control wants it already, so that nothing happens and nothing is told. */
export function isInEffect(talk: Talk, control: TalkControl): boolean {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return (talk.muted[control.leg] ?? false) === (control.type === 'mute');
    case 'hold':
    case 'resume':
      return (talk.held[control.leg] ?? null) === heldWith(control);
    case 'recording.pause':
    case 'recording.resume':
      return talk.isRecordingPaused === (control.type === 'recording.pause');
    case 'supervise':
      return talk.guests[control.leg] === control.mode;
    case 'dtmf':
    case 'play':
    case 'play.stop':
      return false;
  }
}

function heldWith(control: Extract<CallControl, { type: 'hold' | 'resume' }>): 'music' | 'silence' | null {
  if (control.type === 'resume') return null;
  return control.music ? 'music' : 'silence';
}

interface ControlMove {
  event: string;
  state: 'bridged';
  leg?: LegName | null;
  data?: Readonly<Record<string, unknown>> | null;
}

/** The entry of the event log for a control that happened. */
export function moveOfControl(control: TalkControl): ControlMove {
  switch (control.type) {
    case 'mute':
      return { event: 'call.muted', state: 'bridged', ...legFields(control.leg) };
    case 'unmute':
      return { event: 'call.unmuted', state: 'bridged', ...legFields(control.leg) };
    case 'hold':
      return { event: 'call.held', state: 'bridged', ...legFields(control.leg, { music: control.music }) };
    case 'resume':
      return { event: 'call.resumed', state: 'bridged', ...legFields(control.leg) };
    case 'recording.pause':
      return { event: 'recording.paused', state: 'bridged' };
    case 'recording.resume':
      return { event: 'recording.resumed', state: 'bridged' };
    case 'supervise':
      return { event: 'supervision.changed', state: 'bridged', data: { leg_id: control.leg, mode: control.mode } };
    case 'dtmf':
      return { event: 'dtmf.sent', state: 'bridged', ...legFields(control.leg, { digits: control.digits }) };
    case 'play': {
      const { legs, playbackId, characters } = control;
      const data = { playback_id: playbackId, legs, ...(characters !== null && { characters }) };
      return { event: 'playback.started', state: 'bridged', data };
    }
    case 'play.stop':
      return moveOfPlaybackEnd({ playbackId: control.playbackId, end: 'stopped' });
  }
}

/** The entry of the event log for a sound that is over. */
export function moveOfPlaybackEnd({ playbackId, end }: { playbackId: string; end: 'played' | 'stopped' }): ControlMove {
  return { event: 'playback.finished', state: 'bridged', data: { playback_id: playbackId, reason: end } };
}

/** How an event names its leg: by `leg` if it is one of the two of the call, else by `leg_id` of its data. */
export function legFields(
  leg: LegId,
  data: Readonly<Record<string, unknown>> | null = null,
): { leg: LegName | null; data: Readonly<Record<string, unknown>> | null } {
  if (isLegName(leg)) return { leg, data };
  return { leg: null, data: { leg_id: leg, ...data } };
}
