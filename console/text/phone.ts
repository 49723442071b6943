/** Texts of the phone: page, dock, supervision. */

export const phoneText = {
  title: 'Phone',
  description: 'Take and place calls in this browser.',
  available: 'Available',
  goAvailable: 'Go available',
  goOffline: 'Go offline',
  goOfflineEndsCall: 'Hang up before you go offline.',
  offTitle: 'Your phone is off',
  offHint: 'Calls to your user do not ring in this tab. Go available to take and place calls.',
  readyTitle: 'Ready for calls',
  readyHint: 'Calls to your user ring here, on whichever page of the console you are. Keep this tab open.',
  connecting: 'Connecting the phone',
  reconnecting: 'Reconnecting. A call goes on meanwhile.',
  connectionLost: 'The connection to the server is lost. The phone reconnects by itself.',
  replaced: 'Another tab took over this phone. Go available here to use it in this tab.',
  viewerTitle: 'Your role cannot take calls',
  viewerHint: 'Viewers read only. Ask an owner or admin of this workspace for another role.',
  problemTitle: 'The phone went off',
  unavailableTitle: 'This server cannot connect browsers yet',
  unavailableHint:
    'An operator installs the WebRTC worker on the server with this command and restarts it. Calls between phones work without it.',
  unavailableCommand: 'bin/tandem webrtc install',
  unavailableCommandLabel: 'Command that installs the WebRTC worker',
  unknownNumber: 'Number withheld',
  playbackBlocked: 'The browser blocks sound until you click.',
  play: 'Turn the sound on',
  region: 'Call',
  toPhone: 'Open the phone',
  notify: 'Notify me of calls',
  notifyHint: 'Shows a message of your system when a call rings while this tab is hidden.',
  notification: (number: string) => `Incoming call from ${number}`,
};

export const callText = {
  incoming: 'Incoming call',
  incomingParty: 'You are asked to join a call',
  asking: 'Allow the microphone in your browser',
  connecting: 'Connecting the audio',
  starting: 'Connecting',
  dialing: 'Calling',
  ringing: 'Ringing',
  talking: 'Talking',
  onHold: 'On hold: the other party hears music',
  held: 'You were put on hold',
  muted: 'Microphone off',
  ending: 'Hanging up',
  transferRinging: 'Transfer: the target rings',
  transferConsulting: 'Transfer: you talk with the target alone',
  transferTarget: 'Transfer to you: talk first, then the other party joins',
  transferFailed: 'The target of the transfer did not answer. You talk with the other party again.',
  answer: 'Answer',
  reject: 'Reject',
  hangUp: 'Hang up',
  mute: 'Mute',
  unmute: 'Unmute',
  hold: 'Hold',
  resume: 'Resume',
  keypad: 'Keypad',
  transfer: 'Transfer',
  completeTransfer: 'Complete transfer',
  cancelTransfer: 'Cancel transfer',
  duration: 'Duration of the talk',
  reference: (id: string) => `Reference ${id}`,
  ended: 'Call ended',
  openCall: 'Open the call',
};

export const keypadText = {
  label: 'Keypad. Type digits, * and # while it has the focus.',
  key: (key: string) => `Key ${key}`,
  sent: 'Keys sent',
};

export const transferText = {
  title: 'Transfer the call',
  target: 'To',
  number: 'A number',
  colleague: 'A colleague',
  numberLabel: 'Phone number',
  colleagueLabel: 'Colleague',
  colleagueHint: 'Rings in the browser of a colleague who is available.',
  chooseColleague: 'Choose a colleague',
  noColleague: 'No other members in this workspace',
  how: 'How',
  blind: 'Blind',
  blindHint: 'You leave as soon as the target answers. If it does not answer, you talk with the other party again.',
  attended: 'Attended',
  attendedHint: 'You talk with the target first. The other party hears music until you complete or cancel.',
  cost: 'The target is billed as a further leg of the call.',
  submit: 'Transfer',
};

export const dialText = {
  title: 'Call a number',
  label: 'Phone number',
  placeholder: '+91 98765 43210',
  record: 'Record the call',
  submit: 'Call',
  hint: 'Your browser answers first, then the number is dialed. The call costs the price of your trunk.',
};

export const deviceText = {
  title: 'Devices',
  microphone: 'Microphone',
  speaker: 'Speaker',
  ringer: 'Ring on',
  standard: 'Default of the system',
  processed: 'Reduce noise and echo',
  processedHint: 'Turn it off for music or a studio microphone.',
  test: 'Test the microphone',
  stopTest: 'Stop the test',
  testHint: 'Speak: the bar should move.',
  tone: 'Play a test tone',
  cannotChoose: 'This browser always plays on the default device of the system.',
  level: 'Level of the microphone',
  farLevel: 'Level of the other party',
  allow: 'Names of devices show after you allow the microphone.',
};

export const microphoneText = {
  denied: {
    title: 'The microphone is blocked',
    hint: 'Click the icon at the left of the address bar, allow the microphone for this page, then try again.',
  },
  missing: { title: 'No microphone found', hint: 'Plug in a microphone or a headset, then try again.' },
  busy: {
    title: 'The microphone is in use',
    hint: 'Another program keeps it for itself. Close that program or choose another microphone, then try again.',
  },
  insecure: {
    title: 'The browser gives this page no microphone',
    hint: 'Browsers allow the microphone on https pages and on localhost only. Open the console at its https address, or ask the operator to set up https.',
  },
  retry: 'Try again',
} as const;

export const qualityText = {
  good: 'Good network',
  fair: 'Fair network',
  poor: 'Poor network',
  measuring: 'Measuring the network',
  details: (loss: string, jitterMs: number, roundTripMs: string) =>
    `Loss ${loss}, jitter ${jitterMs} ms, round trip ${roundTripMs}`,
};

export const shortcutText = {
  title: 'Keyboard',
  scope: 'On every page of the console while a call rings or is on:',
  answer: 'Answer',
  hangUp: 'Hang up or reject',
  mute: 'Mute or unmute',
  hold: 'Hold or resume',
  keys: 'Keys of the telephone, on the open keypad',
};

export const superviseText = {
  region: 'Supervision',
  connecting: 'Joining the call',
  listen: 'Listen',
  whisper: 'Whisper',
  barge: 'Barge',
  mode: 'Who hears you',
  modeHint: {
    listen: 'You hear both. They do not hear you.',
    whisper: 'You hear both. Only the agent hears you.',
    barge: 'You hear both. Both hear you.',
  },
  leave: 'Leave',
  openCall: 'Open the call',
};

/** Labels of hang-up causes for the user. */
export const causeText: Readonly<Record<string, string>> = {
  NORMAL_CLEARING: 'Hung up',
  ANSWERED_ELSEWHERE: 'Answered on another phone of yours',
  ORIGINATOR_CANCEL: 'The caller gave up',
  CALL_REJECTED: 'Rejected',
  NO_ANSWER: 'No answer',
  USER_BUSY: 'Busy',
  NO_USER_RESPONSE: 'Not reachable',
  UNALLOCATED_NUMBER: 'The number does not exist',
  NETWORK_OUT_OF_ORDER: 'The connection was lost',
  MEDIA_TIMEOUT: 'No audio arrived for 20 seconds',
  MEDIA_FAILED: 'The browser could not set up the audio. Check the UDP port WEBRTC_PORT of the server.',
  MAX_DURATION: 'The call reached its longest duration',
  INSUFFICIENT_FUNDS: 'The wallet is empty',
  BLIND_TRANSFER: 'Transferred',
  ATTENDED_TRANSFER: 'Transferred',
};
