/** Labels of states, legs, events and causes of calls, shared by several pages. */

export const outcomeText = {
  pending: 'Waiting',
  initiated: 'Dialing',
  bridged: 'Talking',
  completed: 'Completed',
  failed: 'Failed',
  rejected: 'Rejected',
  unknown: 'Unknown',
  not_answered: 'Not answered',
  temporary: 'Failed, try again',
};

export const roleText = { agent: 'Agent', customer: 'Customer', party: 'Third party', supervisor: 'Supervisor' };
export const directionText = { outbound: 'Outbound', inbound: 'Inbound' };
export const legStateText = {
  dialing: 'Dialing',
  ringing: 'Ringing',
  answered: 'Connected',
  held: 'On hold',
  ended: 'Left',
};
export const placedViaText = { api_key: 'API key', session: 'Console', inbound: 'The customer' };

export const partyText = {
  browser: 'Browser',
  browserOf: (userId: number) => `Browser of user ${userId}`,
  hidden: 'Hidden',
  unknown: 'Unknown number',
  muted: 'Muted',
  onHold: 'On hold',
};

/** Labels of Q.850 causes and our own. Others are shown as they are. */
const CAUSES: Record<string, string> = {
  NORMAL_CLEARING: 'Hung up',
  USER_BUSY: 'Busy',
  NO_USER_RESPONSE: 'Phone not reachable',
  NO_ANSWER: 'No answer',
  CALL_REJECTED: 'Declined',
  UNALLOCATED_NUMBER: 'Number does not exist',
  NUMBER_CHANGED: 'Number has changed',
  NO_ROUTE_DESTINATION: 'No route to the number',
  DESTINATION_OUT_OF_ORDER: 'Phone out of order',
  INVALID_NUMBER_FORMAT: 'Number not accepted by the carrier',
  FACILITY_REJECTED: 'Refused by the carrier',
  NORMAL_UNSPECIFIED: 'Ended without a reason',
  NORMAL_TEMPORARY_FAILURE: 'Temporary failure of the carrier',
  NETWORK_OUT_OF_ORDER: 'Connection lost',
  SWITCH_CONGESTION: 'Carrier congested',
  BEARERCAPABILITY_NOTAVAIL: 'Audio format not available',
  BEARERCAPABILITY_NOTIMPL: 'Audio format not supported',
  INCOMPATIBLE_DESTINATION: 'No common codec',
  SERVICE_NOT_IMPLEMENTED: 'Not supported by the carrier',
  EXCHANGE_ROUTING_ERROR: 'Routing error of the carrier',
  RECOVERY_ON_TIMER_EXPIRE: 'The carrier did not respond in time',
  INTERWORKING: 'Failure between networks',
  ORIGINATOR_CANCEL: 'Cancelled',
  MEDIA_TIMEOUT: 'No audio arrived',
  BLIND_TRANSFER: 'Transferred',
  ATTENDED_TRANSFER: 'Transferred',
  MAX_DURATION: 'Longest talk time reached',
  INSUFFICIENT_FUNDS: 'Wallet empty',
  SYSTEM_SHUTDOWN: 'Server stopped',
};

export function causeText(cause: string): string {
  return CAUSES[cause] ?? cause;
}

const RECORDING_STATUS: Record<string, string> = {
  recording: 'Running',
  processing: 'Being stored',
  uploaded: 'Stored',
  failed: 'Failed',
  deleted: 'Deleted',
};

export function recordingStatusText(status: string): string {
  return RECORDING_STATUS[status] ?? status;
}

/** Labels of the events in a call's stream. The keys are the events that a page listens to. */
export const EVENT_TEXT: Record<string, string> = {
  'call.pending': 'Call accepted',
  'call.initiated': 'Agent is being dialed',
  'call.rejected': 'Call rejected',
  'call.bridged': 'Both parties talk',
  'call.completed': 'Call completed',
  'call.not_answered': 'Call not answered',
  'call.failed': 'Call failed',
  'call.temporaryfailed': 'Call failed for now',
  'call.held': 'Put on hold',
  'call.resumed': 'Taken off hold',
  'call.muted': 'Muted',
  'call.unmuted': 'Unmuted',
  'agent.ringing': 'Agent’s phone rings',
  'agent.answered': 'Agent answered',
  'customer.dialing': 'Customer is being dialed',
  'customer.ringing': 'Customer’s phone rings',
  'customer.early_media': 'Customer’s network plays audio',
  'leg.dialing': 'Another party is being dialed',
  'leg.ringing': 'Another party’s phone rings',
  'leg.joined': 'Another party joined',
  'leg.left': 'Another party left',
  'leg.failed': 'Another party could not be reached',
  'announcement.started': 'Announcement plays',
  'announcement.finished': 'Announcement finished',
  'announcement.failed': 'Announcement skipped',
  'whisper.started': 'Whisper plays to the agent',
  'whisper.finished': 'Whisper finished',
  'whisper.failed': 'Whisper skipped',
  'playback.started': 'Sound plays',
  'playback.finished': 'Sound finished',
  'dtmf.received': 'Key pressed',
  'dtmf.sent': 'Keys sent',
  'machine.detected': 'Detected who answered',
  'recording.started': 'Recording started',
  'recording.paused': 'Recording paused',
  'recording.resumed': 'Recording resumed',
  'recording.failed': 'Recording failed',
  'recording.uploaded': 'Recording stored',
  'transcript.started': 'Transcription started',
  'transcript.final': 'Said',
  'transcript.failed': 'Transcription stopped',
  'transcript.leg_failed': 'Transcription of a leg stopped',
  'supervision.started': 'Supervision started',
  'supervision.changed': 'Supervision changed',
  'supervision.ended': 'Supervision ended',
  'transfer.started': 'Transfer started',
  'transfer.completed': 'Transfer completed',
  'transfer.failed': 'Transfer failed',
  'transfer.cancelled': 'Transfer cancelled',
};

export function eventText(event: string): string {
  return EVENT_TEXT[event] ?? event;
}
