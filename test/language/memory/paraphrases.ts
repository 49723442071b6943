/**
 * Passages with a question that each answers in other words. They, and the example sentences and definitions of
 * WordNet, were used to tune the offline embedder, the fusion and the relevance threshold. `bench/memory` evaluates on
 * other questions.
 */
export const PARAPHRASES: readonly (readonly [passage: string, question: string])[] = [
  [
    'The elevator in the north tower stays out of order until the spare motor arrives.',
    'When can I use the lift again?',
  ],
  ['Nadia is allergic to peanuts and carries an injector in her bag.', 'Which foods must our guest avoid?'],
  [
    'The puppy chewed through the cable of the router last night.',
    'Why did the internet connection at home stop working?',
  ],
  ['Employees may take up to twelve weeks off after the birth of a child.', 'How long is parental leave?'],
  [
    'Our landlord raised the monthly payment for the flat by eighty euros in spring.',
    'Did the rent of the apartment go up?',
  ],
  ['The surgeon recommended removing the gall bladder before summer.', 'Which operation did the doctor advise?'],
  [
    'Tomorrow a storm with hail is expected along the coast, ferries will stay in port.',
    'Will boats sail in bad weather?',
  ],
  ['Please water the orchids sparingly, once every ten days is plenty.', 'How often do the flowers need care?'],
  ['The jury found the defendant guilty of tax evasion.', 'What was the verdict of the trial?'],
  [
    'Marco quit smoking in March and has been jogging every morning since.',
    'Who gave up cigarettes and started running?',
  ],
  ['The bakery on the corner sells sourdough loaves from six in the morning.', 'Where can I buy fresh bread early?'],
  ['Grandmother knitted a pair of woollen socks for each of the twins.', 'Who made the warm clothes for the babies?'],
  [
    'All laptops must be locked with a strong passphrase of fourteen characters or more.',
    'What are the rules for computer passwords?',
  ],
  ['The vintage of 2015 was the best that this vineyard ever bottled.', 'Which year had the finest wine?'],
  [
    'Because of road works the 42 bus skips the stop at the cathedral.',
    'Does public transport still halt near the church?',
  ],
  [
    'The choir rehearses every Thursday evening in the gymnasium of the primary school.',
    'When do the singers practise?',
  ],
  [
    'Our goalkeeper broke his wrist and will miss the rest of the season.',
    'Which injured player cannot take part in the remaining matches?',
  ],
  ['The museum lets children under twelve in for free.', 'Do kids need a ticket for the exhibition?'],
  ['Sodium levels in his blood were dangerously low after the marathon.', 'What did the lab test of the runner show?'],
  [
    'The spacecraft entered orbit around Mars after a journey of seven months.',
    'How long did the probe travel to the red planet?',
  ],
  [
    'Shareholders approved the merger of the two airlines by a wide margin.',
    'Did investors agree to combine the carriers?',
  ],
  ['The thermostat in the nursery should not go above twenty degrees at night.', 'How warm may the baby room be?'],
  ['Farmers in the valley lost half of their apple harvest to late frost.', 'What destroyed the fruit crop this year?'],
  ['The ambassador was summoned to the foreign ministry over the remarks.', 'Which diplomat had to explain a comment?'],
  ['Add two spoonfuls of vinegar to the dough so that the crust turns flaky.', 'What makes the pastry crisp?'],
  [
    'Her thesis deals with the migration of storks between Poland and Kenya.',
    'What topic about birds did the student research?',
  ],
  ['The dentist closes at noon on Wednesdays.', 'What are the opening hours for having a tooth looked at midweek?'],
  [
    'A pipe burst in the basement and soaked the boxes with the old photographs.',
    'What happened to the pictures in the cellar?',
  ],
  ['The court ordered the firm to compensate the victims of the explosion.', 'Who has to pay damages for the blast?'],
  [
    'Lena speaks fluent Portuguese because she grew up in Lisbon.',
    'Which colleague can translate for our Brazilian client?',
  ],
  [
    'The insurance covers theft of a bicycle only if it was chained to a fixed object.',
    'Am I reimbursed when my bike is stolen?',
  ],
  [
    'The village school has too few teachers, two classes share one room.',
    'Why do pupils sit together in a single classroom?',
  ],
  ['Backups of the database are copied to tape on the first night of the quarter.', 'How is our data archived?'],
  ['He proposed to her on a hot-air balloon above the desert.', 'Where did he ask her to marry him?'],
  ['The recipe needs 300 grams of dark chocolate and a pinch of chilli.', 'Which ingredients go into the dessert?'],
  [
    'The mayor promised cheaper housing for young families before the vote.',
    'What did the politician pledge in the election campaign?',
  ],
  [
    'Wolves have returned to the forest and attack sheep on the upper pastures.',
    'Which predators threaten the livestock?',
  ],
  ['The violinist left the orchestra after a quarrel with the conductor.', 'Why did the musician resign?'],
  ['Passengers with oversized luggage check in at counter nine.', 'Where do I drop off a large suitcase?'],
  [
    'The vaccine has to be kept at minus seventy degrees while it is shipped.',
    'How cold must the medicine be during transport?',
  ],
  ['Our accountant files the yearly return by the end of May.', 'When are the taxes due?'],
  ['The cottage by the lake sleeps eight people and has a wood stove.', 'How many guests fit into the holiday home?'],
  ['The editor rejected the manuscript because the ending felt rushed.', 'Why did the publisher refuse the novel?'],
  ['Police arrested two men who had robbed a jewellery store at gunpoint.', 'Were the thieves caught?'],
  [
    'The battery of the electric van lasts about two hundred kilometres in winter.',
    'How far can the delivery vehicle drive when it is cold?',
  ],
  ['Yusuf would rather be reached by mail than by phone.', 'How does he prefer to be contacted?'],
  ['The board fired the chief executive after profits collapsed.', 'Who was dismissed because earnings fell?'],
  [
    'The lecture on Roman bridges was moved to the large hall.',
    'Where does the talk about ancient architecture take place?',
  ],
  ['A tablet of this kind should be swallowed after a meal, never before.', 'When do I take the pill?'],
  ['The carpenter will deliver the oak table with six chairs on Friday.', 'When does the furniture come?'],
  [
    'Due to the drought, sprinklers may not be used between May and October.',
    'Is watering the lawn allowed in summer?',
  ],
  ['The trainee accidentally deleted the folder with last year invoices.', 'Who erased the billing documents?'],
  ['The soldiers withdrew from the border after the ceasefire.', 'Did troops leave once the fighting ended?'],
  ['Coffee at the conference is paid by the sponsor, lunch is not.', 'Do participants have to buy their own food?'],
  ['The kitten hides under the sofa whenever the vacuum cleaner runs.', 'What is our pet afraid of?'],
  [
    'The factory will dismiss four hundred workers when production moves abroad.',
    'How many jobs are lost at the plant?',
  ],
  ['Ravi bought a second-hand motorcycle with the bonus he got in December.', 'What did he spend the extra pay on?'],
  ['The film about the pianist won the prize of the audience.', 'Which movie received an award?'],
  [
    'The bridge was closed to trucks because inspectors discovered cracks in the steel.',
    'Why may heavy lorries not cross the river?',
  ],
  ['Guests can store valuables in the safe behind the reception.', 'Where do I put my jewels in the hotel?'],
  ['The telescope revealed water vapour in the atmosphere of a distant planet.', 'What did astronomers discover?'],
  ['The nurse changes the bandage every other day until the cut has healed.', 'How is the wound treated?'],
  ['Amelie turned vegetarian after a visit to a slaughterhouse.', 'Who stopped eating meat?'],
  ['The printer on the third floor is jammed and waits for a technician.', 'Which device in the office is broken?'],
  ['Our team beat the champions by three goals to one.', 'What was the score of the football match?'],
  ['Interest on the loan drops to four percent if it is repaid early.', 'Does the bank lower the mortgage rate?'],
  ['The painter mixed the green of the meadow from blue and ochre.', 'How did the artist get the colour of the grass?'],
  [
    'Firefighters needed three hours to put out the blaze in the warehouse.',
    'How long did it take to extinguish the flames?',
  ],
  ['The heir sold the castle to a hotel chain.', 'Who bought the old palace?'],
  [
    'Customs kept the parcel for a week because the declaration was missing.',
    'Why was the shipment from abroad delayed?',
  ],
  ['The astronaut complained of nausea during the first days on the station.', 'Who felt sick in space?'],
  [
    'Scholarships are granted to students whose parents earn little.',
    'Is there financial aid for poor families at the university?',
  ],
  [
    'The lighthouse keeper retired in 1987, the lamp has been automatic since.',
    'When did the last person operate the beacon?',
  ],
  ['Hannah swims forty lengths before breakfast.', 'Which exercise does she do in the morning?'],
  ['The chef replaced butter with olive oil in all dishes.', 'What fat does the kitchen cook with?'],
  ['Two of the hikers lost their way in the fog and spent the night in a cave.', 'Where did the lost climbers sleep?'],
  ['The archive holds letters that the queen wrote to her brother.', 'Whose correspondence with a sibling is kept?'],
  [
    'Download the new firmware before you pair the headphones.',
    'Do I have to update the software of the earphones first?',
  ],
  ['The warranty of the dishwasher expired last autumn.', 'Is the kitchen appliance still under guarantee?'],
  ['A donor gave the orphanage a minibus.', 'Which vehicle did the charity receive as a gift?'],
];
