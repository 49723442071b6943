/**
 * Passages, and questions that they answer in other words where possible. Written for this benchmark without knowledge
 * of how recall works; recall was not tuned on them.
 */
export const QUESTIONS: readonly (readonly [passage: string, question: string])[] = [
  [
    'Refunds are issued within five working days of us receiving the returned parcel.',
    'How long until customers get their money back?',
  ],
  [
    'Our office in Pune is closed on the second and fourth Saturday of each month.',
    'Which weekends does nobody work at the Pune branch?',
  ],
  ['Asha cannot eat peanuts; even traces make her throat swell.', 'What is Asha allergic to?'],
  ['The staging database is wiped and reloaded every Sunday at 02:00 UTC.', 'When does the test data get reset?'],
  [
    'Passwords must be at least fourteen characters and are never rotated on a schedule.',
    'What is the minimum length of a password?',
  ],
  ['Parking on level two is reserved for visitors between nine and five.', 'Where can guests leave their car?'],
  ['The warranty on the water pump expires in March 2027.', 'Until when is the pump covered by guarantee?'],
  ['Ravi prefers to be called on his mobile after six in the evening.', 'What is the best time to phone Ravi?'],
  ['Invoices above 50,000 rupees need a second signature from finance.', 'Who has to approve large bills?'],
  [
    'The printer on the third floor jams when the paper tray is filled past the red line.',
    'Why does the third floor printer keep getting stuck?',
  ],
  [
    'Support is staffed around the clock on weekdays and from eight to eight at weekends.',
    'Can I reach the help desk on a Sunday night?',
  ],
  [
    'The customer asked us to stop sending marketing e-mail and to keep service notices.',
    'May we send newsletters to this client?',
  ],
  [
    'Flights over eight hours may be booked in premium economy.',
    'When is an employee allowed a better seat on the plane?',
  ],
  [
    'The API returns 429 after one hundred requests a minute from one key.',
    'What is the rate limit for calls to the interface?',
  ],
  [
    'Backups are encrypted and copied to a second region every night.',
    'Where do we keep copies of the data in case a site is lost?',
  ],
  ['Mina moved from Nairobi to Lisbon in the spring to lead the design team.', 'In which city does Mina live now?'],
  [
    'The kitchen refrigerator is emptied every Friday at four; label what you want to keep.',
    'What happens to food left in the office fridge over the weekend?',
  ],
  [
    'New employees receive their laptop and badge at reception on the first morning.',
    'Where do I pick up my computer when I start?',
  ],
  [
    'Orders placed before noon leave the warehouse the same day.',
    'How late can I buy something and still have it shipped today?',
  ],
  [
    'The maintenance window for the payment gateway is Tuesday between one and three at night.',
    'When could card transactions be interrupted?',
  ],
  [
    'Tom is colour blind and asks for charts with patterns rather than red and green.',
    'How should graphs be drawn so that Tom can read them?',
  ],
  ['Loans from the tool library run for two weeks and can be renewed once.', 'How long may I borrow a drill?'],
  ['The swimming pool opens at six for members and at ten for everybody else.', 'When can the public go for a swim?'],
  ['Production deploys are frozen from 20 December to 2 January.', 'Can we release software at Christmas?'],
  [
    'Expenses must be submitted within thirty days with a photo of the receipt.',
    'What is the deadline for claiming travel costs?',
  ],
  [
    'The old boiler makes a knocking noise when the pressure drops below one bar.',
    'What causes the banging in the heating?',
  ],
  ['Priya studied marine biology in Goa before she joined the sales team.', "What was the subject of Priya's degree?"],
  [
    'Contractors do not get access to the source repository until they sign the secrecy agreement.',
    'What must freelancers do before they can see the code?',
  ],
  ['The elevator is inspected twice a year, in April and in October.', 'How often is the lift checked?'],
  ['We answer formal complaints in writing within ten days.', 'How fast do we respond when a client is unhappy?'],
  ['The company pays for one language course per employee each year.', 'Will my employer cover Spanish lessons?'],
  ['Luis keeps kosher and does not work on Saturdays.', 'Which dietary rules does Luis follow?'],
  [
    'The sensor in greenhouse four reports temperatures that are two degrees too high.',
    'Which thermometer is inaccurate?',
  ],
  [
    'Calls are recorded only after the caller has heard the announcement.',
    'Do people know that the conversation is being taped?',
  ],
  [
    'A deposit of one month is returned when the keys are handed back and the flat is clean.',
    'When do tenants receive their security money?',
  ],
  ['The bridge on Mill Road is closed to lorries over seven tonnes.', 'Which route can heavy trucks not take?'],
  ['Children under six travel free when with an adult.', 'Do toddlers need a ticket?'],
  [
    'Our supplier in Vietnam needs six weeks of notice for orders above ten thousand pieces.',
    'How far ahead must we plan a big purchase from the Vietnamese manufacturer?',
  ],
  ['Nadia takes over on-call duty from Ben in odd weeks.', 'Who handles emergencies every other week instead of Ben?'],
  [
    'The conference room projector only works with the grey adapter in the drawer.',
    'How do I connect my laptop to the beamer?',
  ],
  [
    'Two-factor login is mandatory for everybody with access to customer data.',
    'Who has to use a second step to sign in?',
  ],
  ['The cafeteria serves a vegan dish every day except Wednesday.', 'When is there no plant-based lunch?'],
  [
    'The tortoise hibernates in the cellar from November to the end of February.',
    'Where does the pet sleep in winter?',
  ],
  [
    'Free cancellation is possible until 48 hours before arrival.',
    'Up to when can I call off my hotel stay without paying?',
  ],
  [
    'The server room is kept at 21 degrees, and an alarm sounds at 27.',
    'At which temperature does the data centre raise an alert?',
  ],
  [
    "Grandmother's bread rises overnight in the refrigerator and bakes at 230 degrees.",
    'How hot must the oven be for the family loaf?',
  ],
  [
    'Trial accounts are deleted ninety days after they expire.',
    'How long is information of people who did not subscribe kept?',
  ],
  [
    'The mayor promised to resurface the cycle path along the canal by autumn.',
    'When will the bike lane near the water be repaired?',
  ],
  ['Samir is afraid of flying and takes the night train to Vienna.', 'How does Samir travel to Austria?'],
  [
    'The alarm code changes on the first of each month and is sent by text message.',
    'How do I learn the new number for the security system?',
  ],
  ['Overtime is paid at one and a half times the hourly wage.', 'What do we earn for extra hours?'],
  [
    'Chlorine has to be added to the fountain once a week in summer.',
    'How frequently should the fountain be disinfected when it is warm?',
  ],
  [
    'The museum is free on the first Sunday of the month.',
    'On which day is there no admission fee for the exhibition?',
  ],
  ['Elena speaks Russian, Hebrew and a little Arabic.', 'Which languages does Elena know?'],
  [
    'The contract with the cleaning company ends in June unless it is renewed in writing.',
    'When does the agreement with the janitors run out?',
  ],
  ['Broken glass goes into the blue bin, not into recycling.', 'How do I dispose of a shattered window?'],
  [
    'The dentist recommended a night guard because Omar grinds his teeth.',
    'Why does Omar wear something in his mouth when asleep?',
  ],
  ['Version 3 of the app drops support for Android 9.', 'Which old phones can no longer install the program?'],
  ['Volunteers meet at the lighthouse at dawn to count seabirds.', 'Where do the bird watchers gather?'],
  ['Interest on late payments is eight percent above the base rate.', 'What does it cost when an invoice is overdue?'],
  [
    'The violin is insured for twelve thousand euros against theft and damage.',
    'For how much is the instrument covered?',
  ],
  ['Our best selling tea is the smoked one from Fujian.', 'What do customers buy most often?'],
  ['The ferry does not run when the wind is stronger than force eight.', 'In what weather is the boat cancelled?'],
  ['Karim wants his coffee black and his meetings before ten.', 'At what time of day does Karim like to be scheduled?'],
  [
    'The fire drill takes place without warning twice a year.',
    'How many times annually do we practise evacuating the building?',
  ],
  [
    'The greenhouse tomatoes are watered by drip at six in the morning.',
    'When do the plants under glass get irrigated?',
  ],
  ['Gift cards are valid for three years and cannot be exchanged for cash.', 'When does a voucher expire?'],
  ['The grant pays for travel and equipment but not for salaries.', 'Can we hire somebody with the funding?'],
  ['Hanna broke her wrist skiing and types with one hand until May.', 'What injury does Hanna have?'],
  [
    'Every pull request needs two reviewers, one of them from another team.',
    'How many people must look at a code change before it is merged?',
  ],
  ['The well is forty metres deep and went dry in the summer of 2022.', 'In which year did we run out of groundwater?'],
  ['The landlord allows cats but no dogs.', 'May I keep a puppy in the apartment?'],
  [
    'Shipments to Norway are subject to customs duty, which the recipient pays.',
    'Who bears the import tax on parcels going to Oslo?',
  ],
  ['The choir rehearses in the school hall on Thursdays except in holidays.', 'Where do the singers practise?'],
  [
    'Yusuf gets migraines from fluorescent lamps and works beside the window.',
    'Why does Yusuf not sit under the tube lights?',
  ],
  [
    'Our sales target for the quarter is four million, of which we have reached three.',
    'How much revenue is still missing this term?',
  ],
  ['The lawn mower needs two-stroke fuel, mixed one to fifty.', 'What kind of petrol goes into the grass cutter?'],
  ['Exams can be repeated once, at the earliest after six weeks.', 'How soon may a student who failed try again?'],
  [
    'The Kyoto team writes minutes in Japanese and a summary in English.',
    'In what language are notes of the meetings in Japan taken?',
  ],
  [
    'The basement flooded in 2019, so nothing may be stored on the floor there.',
    'Why must boxes in the cellar stand on shelves?',
  ],
  ['Ingrid is retiring in September and Paolo will succeed her.', "Who takes Ingrid's position when she leaves?"],
  [
    'The theatre offers headphones with audio description for blind visitors.',
    'What help is there for people who cannot see the play?',
  ],
  ['Blood donors get half a day off.', 'Do I have to take vacation to give blood?'],
  [
    'The telescope must cool for an hour before the picture is sharp.',
    'How long before observing should I put the instrument outside?',
  ],
  [
    'Subscriptions renew automatically unless they are cancelled a week before.',
    'How can I prevent my plan from being extended?',
  ],
  [
    'The red cable in the cabinet is live even when the main switch is off.',
    'Which wire is dangerous after cutting the power?',
  ],
  ["Farah plays goalkeeper in the women's handball team of the city.", 'What sport does Farah do?'],
  ['Milk from the northern farms is collected every second day.', 'How often does the dairy tanker visit the farmers?'],
  ['The visa takes three weeks and costs eighty dollars.', 'How expensive is the entry permit?'],
  ['Old monitors are given to the school in Sector 12.', 'What do we do with screens that we no longer need?'],
  ['The wedding is on the island, so guests need to take the ferry at eleven.', 'How do people get to the ceremony?'],
  ['Complaints about noise are handled by the night porter.', 'Who do I tell when the neighbours are too loud?'],
  ['The bakery stops making rye bread in July and August.', 'In which months is the dark loaf unavailable?'],
  ['Aisha finished her doctorate on glaciers last winter.', 'What did Aisha research?'],
  ['Machines older than five years are replaced at the next budget.', 'When do we buy new computers?'],
  [
    'Roaming data is switched off by default and can be enabled by the line manager.',
    'Who can let me use mobile internet abroad?',
  ],
  ['The river path is lit until midnight.', 'Until what hour are the lamps along the water on?'],
  ['Fever above 39 degrees for two days means you should see a doctor.', 'When is a high temperature serious?'],
  ['Our Berlin customers want invoices in PDF and by post.', 'In which form do clients in Germany expect their bills?'],
  ['The orchestra tunes to 442 hertz.', 'Which pitch do the musicians use?'],
  ['Deliveries go to the gate behind the building, never to reception.', 'Where should couriers drop parcels?'],
  ["The roof was insulated in 2015 with sheep's wool.", 'Which material keeps the attic warm?'],
  ['Diego is the only one with the key to the wine cellar.', 'Whom do I ask to open the room with the bottles?'],
  [
    'Sick leave longer than three days requires a certificate.',
    'After how many days of illness must I bring a note from a physician?',
  ],
  [
    'The radio interview is broadcast on Monday and repeated on Wednesday night.',
    'When can I listen to the programme if I miss it?',
  ],
  [
    'Solar panels cover about sixty percent of what the factory uses.',
    "How much of the plant's electricity comes from the sun?",
  ],
  ['The hiking trail is closed while the eagles are nesting.', 'Why can we not walk there in spring?'],
  ['Lena wants her reports as one page with the conclusion first.', 'How does Lena like summaries to be written?'],
  ['The exchange student arrives on the 14th and stays until Easter.', 'How long will our guest from abroad be here?'],
  ['Spare fuses are in the tin above the meter.', 'Where do I find a replacement when the electricity trips?'],
  [
    'The board meets in private when salaries are discussed.',
    'Which topic do the directors treat behind closed doors?',
  ],
  ['Fish is delivered on Tuesdays and Fridays before seven.', 'On which mornings does seafood arrive?'],
  ['The course is taught online, and only the final test is in person.', 'What do I have to attend on site?'],
  ['George lost his luggage in Doha and got it back a week later in Perth.', 'Where did the missing suitcase turn up?'],
  [
    'Helmets are compulsory on the building site, also for visitors.',
    'What protective gear do guests of the construction area need?',
  ],
  [
    'The archive holds letters from 1740 onward, in French and Latin.',
    'How old are the earliest documents in the collection?',
  ],
  ['Discounts cannot be combined.', 'Is it possible to use two coupons at once?'],
  [
    "Our bees produced forty kilos of honey this year, half of last year's.",
    'How large was the previous harvest from the hives?',
  ],
  ['The lake is safe to skate on when the ice is twelve centimetres thick.', 'When can we walk on the frozen water?'],
  ['Wei cancelled the trip because her passport had expired.', 'Why did Wei stay at home?'],
  ['The sauna is mixed except on Mondays, when it is for women.', 'Which day is reserved for ladies?'],
  [
    'Servers are named after rivers, and printers after composers.',
    'What is the naming scheme for machines in the network?',
  ],
  [
    'Calling the hotline costs nothing from landlines.',
    'Is there a charge for phoning support from a fixed telephone?',
  ],
  [
    'The apprentice may drive the forklift only under supervision.',
    'Who is not allowed to operate the lifting vehicle alone?',
  ],
  ['Our Mumbai agents open with a greeting in Marathi.', 'In what language do operators in Mumbai say hello?'],
  ['The statue was moved to the park after the square was rebuilt.', 'Where does the monument stand today?'],
  ['Late arrivals wait in the foyer until the interval.', 'What happens to people who come after the show has begun?'],
  [
    'Zara trains for a marathon and runs home from work on Mondays.',
    'Why does Zara not take the bus at the start of the week?',
  ],
  ['The lease of the copier includes toner but not paper.', 'What must we buy ourselves for the photocopier?'],
  [
    'Mushrooms from this forest are not to be eaten because of the old smelter.',
    'Why is it unsafe to gather food among these trees?',
  ],
  ['Tickets are checked on board, not at the platform.', 'Where do conductors control whether I paid?'],
  [
    'The novel was rejected by eleven publishers before it won the prize.',
    'How many times was the award-winning book turned down?',
  ],
  ['Emergency contacts are reviewed every January.', 'When do we update whom to call in a crisis?'],
  ['The garden shed must not be higher than two and a half metres.', 'How tall may the hut in the yard be?'],
  ['Noor translates for the hospital on Wednesdays without pay.', 'What volunteer work does Noor do?'],
  ['Rain water from the roof feeds the toilets on the ground floor.', 'What are the lavatories flushed with?'],
  ['The auction starts at eight hundred, in steps of fifty.', 'What is the lowest bid?'],
  ['Cheques are no longer accepted at the counter.', 'Which means of payment do cashiers refuse?'],
  ['The puppy gets three meals a day until it is six months old.', 'How often should the young dog be fed?'],
  [
    'The translation bureau charges by the line of fifty-five characters.',
    'How is the price for translating a text worked out?',
  ],
  ['Victor owns the patent on the folding mechanism until 2031.', 'Who holds the rights to how it folds?'],
  [
    'The snow plough clears the main street before five and the side streets after nine.',
    'When are small roads free of snow?',
  ],
  ['People over sixty-five pay half price on trams.', 'Do pensioners get cheaper public transport?'],
  ['The summer camp has places for thirty children, of whom ten need financial help.', 'How many kids can take part?'],
  [
    'The last man out switches the coffee machine off and locks the veranda.',
    'What has to be done before leaving in the evening?',
  ],
  ['Shares are granted over four years with nothing in the first.', 'When do employees receive their first stock?'],
  ['The vaccine has to be kept between two and eight degrees.', 'How cold must the injections be stored?'],
  ['The lecture was moved from the small hall to the aula because of demand.', 'Why did the talk change rooms?'],
  ['Rosa paints in oil and sells at the market on the harbour.', "Where can I buy one of Rosa's pictures?"],
  ['Tyres are changed in October and again at Easter.', 'When does the car get its winter wheels?'],
];
