/** Sentences from telephone menus and from reading aloud, without anything to normalise. */
export const SENTENCES: readonly string[] = [
  'Your call is important to us, please stay on the line.',
  'The next available agent will be with you in a moment.',
  'Please enter your account number followed by the pound key.',
  'Thank you for calling, and have a pleasant afternoon.',
  'We are sorry, but nobody is available to take your call.',
  'Your order was shipped on Monday and should arrive before the weekend.',
  'To speak with somebody from the billing department, press two.',
  'The meeting has been moved to three o clock tomorrow afternoon.',
  'Could you tell me the name of the street where you live?',
  'There was a heavy rain last night, and the river rose above its banks.',
  'She opened the window because the room was very warm.',
  'The old man walked slowly down the road with his dog.',
  'I would like to change the address on my account.',
  'The train to the city leaves every twenty minutes.',
  'He asked the doctor whether the medicine was safe for children.',
  'We will send you a letter with all the details next week.',
];
