import type { LegName } from './events.ts';

/** What somebody may ask of a live call, and what it changes: plain data and pure functions. */

export type CallControl =
  /** The other party does not hear the leg. */
  | { type: 'mute'; leg: LegName }
  | { type: 'unmute'; leg: LegName }
  /** Key presses to the leg; `digits` as `KeyPresses` of the media plane has them. */
  | { type: 'dtmf'; leg: LegName; digits: string; durationMs: number }
  /** The recording goes on with silence. */
  | { type: 'recording.pause' }
  | { type: 'recording.resume' };

/** How the two parties are connected while they talk. */
export interface Talk {
  muted: Readonly<Record<LegName, boolean>>;
  isRecordingPaused: boolean;
}

export const OPEN_TALK: Talk = { muted: { agent: false, customer: false }, isRecordingPaused: false };

/** Why a control did not happen. */
export type ControlRefusal =
  /** The parties do not talk: they are not bridged yet, or not any more. */
  | 'CALL_NOT_LIVE'
  /** The call is not being recorded. */
  | 'RECORDING_UNAVAILABLE'
  /** The media plane could not do it. */
  | 'INTERNAL';

export function talkAfter(talk: Talk, control: CallControl): Talk {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return { ...talk, muted: { ...talk.muted, [control.leg]: control.type === 'mute' } };
    case 'recording.pause':
    case 'recording.resume':
      return { ...talk, isRecordingPaused: control.type === 'recording.pause' };
    case 'dtmf':
      return talk;
  }
}

/** Whether the talk is as the control wants it already, so that nothing happens and nothing is told. */
export function isInEffect(talk: Talk, control: CallControl): boolean {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return talk.muted[control.leg] === (control.type === 'mute');
    case 'recording.pause':
    case 'recording.resume':
      return talk.isRecordingPaused === (control.type === 'recording.pause');
    case 'dtmf':
      return false;
  }
}

interface ControlMove {
  event: string;
  state: 'bridged';
  leg?: LegName;
  data?: Readonly<Record<string, unknown>>;
}

/** The entry of the event log for a control that happened. */
export function moveOfControl(control: CallControl): ControlMove {
  switch (control.type) {
    case 'mute':
      return { event: 'call.muted', state: 'bridged', leg: control.leg };
    case 'unmute':
      return { event: 'call.unmuted', state: 'bridged', leg: control.leg };
    case 'recording.pause':
      return { event: 'recording.paused', state: 'bridged' };
    case 'recording.resume':
      return { event: 'recording.resumed', state: 'bridged' };
    case 'dtmf':
      return { event: 'dtmf.sent', state: 'bridged', leg: control.leg, data: { digits: control.digits } };
  }
}
