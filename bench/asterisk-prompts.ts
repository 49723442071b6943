import { existsSync, readFileSync } from 'node:fs';
import { parseWav } from '../media/wav.ts';

/**
 * Prompts of a telephone exchange, spoken by Allison Smith at 8 kHz: Debian's `asterisk-core-sounds-en-wav`. The texts
 * are those that Asterisk publishes (core-sounds-en.txt, Digium Inc., CC BY-SA 3.0). Only sentences of at least four
 * words, without menus of half a minute.
 */

export interface Prompt {
  name: string;
  text: string;
  samples: Int16Array;
  sampleRateHz: number;
}

export const PROMPTS_PACKAGE = 'asterisk-core-sounds-en-wav';

/**
 * Returns up to `most` prompts, spread evenly over the list; [] if the package is not installed. The settings of the
 * recogniser were chosen without the `judging` half.
 */
export function asteriskPrompts(most: number, half: 'judging' | 'both' = 'both'): Prompt[] {
  if (!existsSync(FOLDER)) return [];
  const names = Object.keys(TEXTS)
    .filter((_, index) => half === 'both' || index % 2 === 1)
    .filter((name) => existsSync(`${FOLDER}/${name}.wav`));
  const step = Math.max(1, names.length / most);
  const chosen = names.filter((_, index) => Math.floor(index / step) !== Math.floor((index - 1) / step));
  return chosen.map((name) => {
    const { samples, sampleRateHz } = parseWav(readFileSync(`${FOLDER}/${name}.wav`));
    return { name, text: TEXTS[name]!, samples: samples[0]!, sampleRateHz };
  });
}

const FOLDER = '/usr/share/asterisk/sounds/en_US_f_Allison';

const TEXTS: Record<string, string> = {
  'agent-alreadyon': 'That agent is already logged on. Please enter your agent number followed by the pound key.',
  'agent-incorrect': 'Login incorrect. Please enter your agent number followed by the pound key.',
  'agent-newlocation': 'Please enter a new extension, followed by pound.',
  'agent-pass': 'Please enter your password followed by the pound key.',
  'auth-incorrect': 'Password incorrect. Please enter your password followed by the pound key.',
  'conf-extended': 'The conference has been extended.',
  'conf-getchannel': 'Please enter the channel number followed by the pound key.',
  'conf-getconfno': 'Please enter your conference number followed by the pound key.',
  'conf-getpin': 'Please enter the conference pin number.',
  'conf-hasjoin': 'is now in the conference.',
  'conf-hasleft': 'has left the conference.',
  'conf-invalidpin': 'That pin is invalid for this conference.',
  'conf-invalid': 'That is not a valid conference number. Please try again.',
  'conf-kicked': 'You have been kicked from this conference',
  'conf-leaderhasleft': 'The leader has left the conference.',
  'conf-lockednow': 'The conference is now locked',
  'conf-muted': 'You are now muted',
  'conf-noempty': 'No empty conferences currently exist.',
  'conf-onlyone': 'There is currently one other participant in the conference.',
  'conf-onlyperson': 'You are currently the only person in this conference.',
  'conf-placeintoconf': 'You will now be placed into the conference.',
  'conf-waitforleader': 'The conference will begin when the leader arrives.',
  'demo-echodone': 'The echo test has been completed.',
  'demo-nomatch': "I'm sorry there are no matches for those keywords",
  'demo-nogo':
    'I am afraid I was unable to create a connection to the Digium demonstration Asterisk server. You may find some helpful debugging information on the Asterisk console.',
  'demo-thanks': 'Goodbye. Thank you for trying out the Asterisk Open Source PBX.',
  'dir-instr': 'If this is the person you are looking for press 1 now, otherwise please press star now.',
  'dir-nomatch': 'No directory entries match your search.',
  'dir-nomore': 'There are no more compatible entries in the directory.',
  invalid: "I am sorry, that's not a valid extension. Please try again.",
  'pbx-invalidpark': 'I am sorry, there is no call parked on that extension. Please try again.',
  'privacy-incorrect': "I'm sorry, that number is not valid.",
  'privacy-prompt': 'Please enter your phone number, starting with the area code.',
  'privacy-unident': 'The party you are trying to reach does not accept unidentified calls.',
  'priv-introsaved': 'Thank you. Please hold, while I attempt to connect you with your party!',
  'priv-recordintro': 'At the tone, please say your name.',
  'queue-callswaiting': 'Waiting to speak with a representative',
  'queue-holdtime': 'The estimated hold time is currently',
  'queue-thankyou': 'Thank you for your patience',
  'queue-thereare': 'You are currently caller number',
  'queue-youarenext': 'Your call is now first in line and will be answered by the next available representative.',
  'ss-noservice': 'The number you have dialed is not in service. Please check the number and try again.',
  transfer: 'Please hold while I try that extension.',
  'tt-allbusy':
    'All representatives of the household are currently assisting other telemarketers. Please hold and your call will be answered in the order it was received.',
  'tt-monkeysintro': 'They have been carried away by monkeys',
  'tt-somethingwrong': 'Something is terribly wrong',
  'tt-weasels': 'Weasels have eaten our phone system',
  'vm-calldiffnum': 'press 2 to enter a different number',
  'vm-dialout': 'please wait while i connect your call',
  'vm-enter-num-to-call': 'please enter the number you wish to call',
  'vm-forward': 'Press 1 to enter an extension, press 2 to use the directory',
  'vm-helpexit': 'Press star for help or pound to exit.',
  'vm-instructions':
    'To look into your messages press 1 now. You may quit voicemail at any time by pressing the pound key.',
  'vm-invalidpassword': 'That is not a valid password. Please try again.',
  'vm-mailboxfull': "sorry but the user's mail box can't accept more messages",
  'vm-mismatch': 'The passwords you entered and re-entered did not match. Please try again.',
  'vm-msgsaved': 'Your message has been saved.',
  'vm-newpassword': 'Please enter your new password followed by the pound key.',
  'vm-next': 'Press 6 to play the next message.',
  'vm-nobodyavail': 'Nobody is available to take your call at the moment',
  'vm-nobox': 'you cannot reply to this message because the sender does not have a mailbox',
  'vm-passchanged': 'Your passwords have been changed.',
  'vm-prev': 'Press 4 for the previous message',
  'vm-reachoper': 'press 0 to reach an operator',
  'vm-rec-name': 'After the tone say your name and then press the pound key.',
  'vm-rec-unv': 'After the tone say your unavailable message and then press the pound key.',
  'vm-repeat': 'Press 5 to repeat the current message.',
  'vm-review': 'press 1 to accept this recording press 2 to listen to it press 3 to rerecord your message',
  'vm-savefolder': 'Which folder should I save the message to?',
  'vm-sorry': "I'm sorry I did not understand your response.",
  'vm-starmain': 'press star to return to the main menu',
  'vm-tempgreetactive': 'Your temporary greeting is currently active',
  'vm-tempremoved': 'Your temporary greeting has been removed',
  'vm-tmpexists': 'There is a temporary greeting, which overrides your standard greetings.',
  'vm-tocallback': 'press 2 to call the person who sent this message',
  'vm-toforward': 'Press 8 to forward the message to another user',
  'vm-tomakecall': 'press 4 to place an outgoing call',
  'vm-whichbox': 'To leave a message, please enter a mailbox number.',
};
