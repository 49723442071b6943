import { PCMU_SDP, pause, receive, receiveStatus, requestAsCaller, respond, sdpOf } from './sipp-script.ts';

/** Scenarios with sipp as the caller, named after their case. */

const RINGING = { provisional: [100, 180] } as const;
const invite = requestAsCaller('INVITE', 1, { sdp: PCMU_SDP });
const connected = [invite, receiveStatus(200, RINGING), requestAsCaller('ACK', 1)];
const hangsUp = (sequence: number) => [requestAsCaller('BYE', sequence), receiveStatus(200)];
const isRefused = (status: number, parts: Parameters<typeof requestAsCaller>[2]) => [
  requestAsCaller('INVITE', 1, { sdp: PCMU_SDP, ...parts }),
  receiveStatus(status, RINGING),
  requestAsCaller('ACK', 1, { branch: '[branch-4]' }),
];
const asksAlone = (method: string, status: number, parts: Parameters<typeof requestAsCaller>[2] = {}) => [
  requestAsCaller(method, 1, { isInDialog: false, ...parts }),
  receiveStatus(status),
];
const direction = (version: number, attribute: string) => sdpOf({ formats: '0', attributes: [attribute], version });

export const CALLING_SCENARIOS = {
  'calls-and-hangs-up': [...connected, ...hangsUp(2)],
  'calls-and-is-hung-up': [...connected, receive('BYE'), respond(200, 'OK')],
  /** As if a proxy handled both at the same time. */
  'hangs-up-ahead-of-its-ack': [
    ...[invite, receiveStatus(200, RINGING)],
    ...[...hangsUp(2), requestAsCaller('ACK', 1)],
  ],
  'calls-without-offer': [
    requestAsCaller('INVITE', 1),
    receiveStatus(200, RINGING),
    requestAsCaller('ACK', 1, { sdp: PCMU_SDP }),
    ...hangsUp(2),
  ],
  'calls-with-unknown-codec': isRefused(488, { sdp: sdpOf({ formats: '97', attributes: ['rtpmap:97 AMR/8000'] }) }),
  'is-refused-as-busy': isRefused(486, {}),
  'requires-an-unknown-extension': isRefused(420, { headers: ['Require: teleportation'] }),
  'calls-on-the-last-hop': [
    requestAsCaller('INVITE', 1, { sdp: PCMU_SDP, headers: ['Max-Forwards: 0'] }),
    receiveStatus(200, RINGING),
    requestAsCaller('ACK', 1),
    ...hangsUp(2),
  ],
  'wants-a-session-of-ten-seconds': isRefused(422, { headers: ['Session-Expires: 10', 'Supported: timer'] }),
  'cancels-while-it-rings': [
    invite,
    receiveStatus(180),
    requestAsCaller('CANCEL', 1, { branch: '[branch-3]' }),
    receiveStatus(200),
    receiveStatus(487),
    requestAsCaller('ACK', 1, { branch: '[branch-8]' }),
  ],
  'holds-and-resumes': [
    ...connected,
    ...['sendonly', 'sendrecv'].flatMap((attribute, index) => [
      requestAsCaller('INVITE', 2 + index, { isInDialog: true, sdp: direction(2 + index, attribute) }),
      receiveStatus(200),
      requestAsCaller('ACK', 2 + index),
    ]),
    ...hangsUp(4),
  ],
  'holds-with-update': [
    ...connected,
    requestAsCaller('UPDATE', 2, { sdp: direction(2, 'inactive') }),
    receiveStatus(200),
    ...hangsUp(3),
  ],
  'asks-for-options': asksAlone('OPTIONS', 200),
  'tries-to-register': asksAlone('REGISTER', 405),
  'tries-to-subscribe': asksAlone('SUBSCRIBE', 405, { headers: ['Event: presence'] }),
  'hangs-up-a-call-that-nobody-knows': asksAlone('BYE', 481, { headers: [] }),
  'waits-before-it-hangs-up': [...connected, pause(300), ...hangsUp(2)],
} as const satisfies Record<string, readonly string[]>;
