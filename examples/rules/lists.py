"""Lists of names and small functions that find spans, shared by the rules for BTC, WNUT-17 and Wikigold.

The lists are general knowledge. Longer lists come from the training parts of other corpora, see `read_names`.
"""

from collections import Counter
from functools import cache

from spen_plugins import locate


def split_words(text):
    return frozenset(text.split())


def split_phrases(text):
    """Returns the phrases of a text that separates them by commas."""
    return frozenset(" ".join(phrase.split()) for phrase in text.split(",")) - {""}


# ---- people

FIRST_NAMES = split_words("""
    Aaron Abdul Abigail Abraham Adam Adele Adrian Ahmed Aisha Alan Albert Alejandro Alex Alexander Alexandra Alexis
    Alfred Ali Alice Alison Allen Allison Amanda Amber Amelia Amy Ana Anders Andre Andrea Andrew Andy Angela
    Angelina Anita Ann Anna Anne Annie Anthony Antonio Archie Arnold Arthur Ashley Barack Barbara Barry Beatrice
    Becky Ben Benjamin Bernard Beth Betty Beyonce Bill Billy Bob Bobby Boris Brad Bradley Brandon Brenda Brian Bruce
    Bryan Caitlin Calvin Cameron Carl Carlos Carly Carmen Carol Caroline Catherine Cecilia Charles Charlie Charlotte
    Cheryl Chloe Chris Christian Christina Christine Christopher Cindy Claire Clara Clark Claude Claudia Cliff Clive
    Colin Connor Craig Cristiano Curtis Cynthia Daisy Dan Daniel Danielle Danny Darren Dave David Dean Deborah
    Denise Dennis Derek Diana Diane Diego Dmitri Donald Donna Doris Dorothy Doug Douglas Duncan Dylan Eddie Edgar
    Edith Edmund Eduardo Edward Edwin Eleanor Elena Elijah Elizabeth Ella Ellen Elliot Elvis Emily Emma Eric Erik
    Ernest Ethan Eugene Eva Evan Evelyn Fatima Felix Fernando Fiona Florence Frances Francesca Francis Francisco
    Frank Franklin Franz Fred Frederick Friedrich Gabriel Gareth Gary Gavin Geoff Geoffrey George Georgia Gerald
    Gerard Gilbert Giovanni Glenn Gordon Grace Graham Greg Gregory Guillermo Gustav Guy Hannah Hans Harold Harriet
    Harry Harvey Hassan Heather Heinrich Helen Henri Henry Herbert Herman Hillary Holly Howard Hugh Hugo Ian Ibrahim
    Irene Isaac Isabel Isabella Ivan Jack Jackie Jackson Jacob Jacques Jake James Jamie Jan Jane Janet Jasmine Jason
    Javier Jay Jean Jeff Jeffrey Jennifer Jenny Jeremy Jerry Jesse Jessica Jim Jimmy Joan Joanna Joe Joel Johann
    Johannes John Johnny Jon Jonathan Jordan Jorge Jose Joseph Josh Joshua Juan Judith Judy Julia Julian Julie
    Juliet Justin Karen Karl Kate Katherine Kathleen Kathy Katie Katy Keith Kelly Ken Kenneth Kenny Kevin Kim Kirk
    Kirsty Kobe Konrad Kurt Kyle Lance Larry Laura Lauren Lawrence Leah LeBron Lee Leo Leon Leonard Leonardo Leslie
    Lewis Liam Lily Linda Lindsay Lionel Lisa Liz Lloyd Logan Louis Louise Lucas Lucy Luis Luke Lydia Lynn Madison
    Mahmoud Malcolm Marc Marcel Marcus Margaret Maria Marie Marilyn Mario Marion Mark Martha Martin Marvin Mary Matt
    Matthew Maurice Max Megan Mehmet Melissa Michael Michel Michelle Miguel Mike Miles Miley Mitch Mohamed Mohammad
    Mohammed Molly Monica Morgan Muhammad Nancy Naomi Natalie Natasha Nathan Neil Nelson Neville Niall Nicholas Nick
    Nicolas Nicole Nigel Nikita Nina Noah Noel Nora Norman Oliver Olivia Omar Oprah Oscar Oswald Otto Owen Pablo
    Pamela Patricia Patrick Paul Paula Pauline Pedro Penelope Percy Peter Phil Philip Philippe Phillip Phoebe Pierre
    Priya Rachel Rafael Rahul Ralph Ramesh Randy Raul Ray Raymond Rebecca Reginald Ricardo Richard Rick Ricky
    Rihanna Rob Robbie Robert Roberto Robin Rodney Roger Ronald Ronnie Rory Rosa Rose Ross Roy Rupert Russell Ruth
    Ryan Sally Sam Samantha Samuel Sandra Sara Sarah Scott Sean Sebastian Selena Serena Sergei Seth Shane Shannon
    Sharon Shaun Shawn Sheila Shirley Sidney Simon Sofia Sophia Sophie Spencer Stacey Stanley Stella Stephanie
    Stephen Steve Steven Stewart Stuart Susan Suzanne Sven Sylvia Tanya Taylor Ted Teresa Terry Theodore Theresa
    Thomas Tiffany Tim Timothy Tina Toby Todd Tom Tommy Tony Tracy Travis Trevor Tyler Ursula Vanessa Vernon
    Veronica Victor Victoria Vincent Viktor Vladimir Walter Warren Wayne Wendy Wesley Whitney Wilfred Wilhelm
    William Xavier Yusuf Yvonne Zac Zach Zoe
""")
SURNAMES = split_words("""
    Adams Anderson Bailey Baker Barnes Bennett Campbell Carter Collins Cooper Cruz Davies Davis Diaz Edwards Evans
    Fernandez Fletcher Flores Foster Garcia Gibson Gomez Gonzalez Graham Griffin Hamilton Harris Harrison Henderson
    Hernandez Hughes Hussein Jenkins Johnson Johnston Jones Kennedy Khan Kumar Lopez Marshall Martinez McDonald
    Mendoza Mitchell Morales Morris Murphy Nguyen Patel Patterson Perez Peterson Phillips Powell Ramirez Reynolds
    Richardson Rivera Roberts Robertson Robinson Rodriguez Rogers Russell Sanchez Sanders Sharma Simmons Simpson
    Singh Smith Stevens Sullivan Thompson Torres Turner Wallace Watson Wilkinson Williams Wilson
""")
FAMOUS_PEOPLE = split_phrases("""
    Obama, Barack Obama, Michelle Obama, Bush, Clinton, Hillary, Romney, Mitt Romney, McCain, Sarah Palin, Biden,
    Trump, Donald Trump, David Cameron, Gordon Brown, Tony Blair, Nick Clegg, Ed Miliband, Boris Johnson, Nigel
    Farage, Merkel, Putin, Gaddafi, Mubarak, Mugabe, Mandela, Nelson Mandela, Gillard, Tony Abbott, Kevin Rudd,
    Modi, Rahul Gandhi, Osama Bin Laden, Bin Laden, Assange, Snowden, Steve Jobs, Bill Gates, Mark Zuckerberg,
    Zuckerberg, Rupert Murdoch, Murdoch, Einstein, Shakespeare, Hitler, Stalin, Napoleon, Churchill, Thatcher,
    Gandhi, Jesus, Jesus Christ, Christ, God, Allah, Santa, Santa Claus, Oprah, Justin Bieber, Bieber, Selena Gomez,
    Lady Gaga, Gaga, Katy Perry, Rihanna, Beyonce, Beyoncé, Jay-Z, Jay Z, Kanye, Kanye West, Kim Kardashian, Drake,
    Eminem, Lil Wayne, Nicki Minaj, Nicki, Chris Brown, Usher, Ne-Yo, Pitbull, Snoop Dogg, Snoop, 50 Cent, Adele,
    Amy Winehouse, Ed Sheeran, Taylor Swift, Taylor Lautner, Miley Cyrus, Miley, Demi Lovato, Britney Spears,
    Britney, Madonna, Michael Jackson, Elvis, John Lennon, Bob Dylan, Bob Marley, Tupac, Whitney Houston, Mariah
    Carey, Jennifer Lopez, J.Lo, Cheryl Cole, Simon Cowell, Susan Boyle, Louis Walsh, Harry Styles, Zayn, Zayn
    Malik, Liam Payne, Niall Horan, Louis Tomlinson, Joe Jonas, Nick Jonas, Robert Pattinson, Kristen Stewart, Emma
    Watson, Johnny Depp, Brad Pitt, Angelina Jolie, Tom Cruise, Leonardo DiCaprio, George Clooney, Will Smith,
    Charlie Sheen, Paris Hilton, Stephen Fry, Jeremy Clarkson, Ricky Gervais, Jimmy Fallon, Jon Stewart, Ellen
    DeGeneres, Messi, Lionel Messi, Ronaldo, Cristiano Ronaldo, Rooney, Wayne Rooney, Beckham, David Beckham,
    Suarez, Gerrard, Lampard, Balotelli, Torres, Drogba, Wenger, Mourinho, Alex Ferguson, Fergie, Van Persie, Ozil,
    Neymar, LeBron, Lebron James, LeBron James, Kobe, Kobe Bryant, Michael Jordan, Tebow, Tim Tebow, Peyton Manning,
    Tom Brady, Brett Favre, Tiger Woods, Federer, Roger Federer, Nadal, Djokovic, Andy Murray, Serena Williams,
    Usain Bolt, Lance Armstrong, Sachin, Tendulkar, Sachin Tendulkar, Dhoni, Kohli, Harry Potter, Hermione,
    Voldemort, Sherlock Holmes, James Bond, Batman, Superman, Spiderman
""")
TITLES = split_words("""
    Mr Mr. Mrs Mrs. Ms Ms. Miss Dr Dr. Prof Prof. Professor Sir Lord Lady Dame President Senator Sen. Rep. Gov.
    Governor Mayor Minister Chancellor Judge Justice King Queen Prince Princess Duke Duchess Earl Count Baron
    Emperor Pope Bishop Archbishop Cardinal Father Sister Saint Rabbi Imam Captain Capt. Colonel Col. General Gen.
    Lieutenant Lt. Lt Major Maj. Sergeant Sgt. Admiral Commander Brigadier Marshal Coach Detective Officer Inspector
    Uncle Aunt Auntie Secretary Director Chairman
""")
PERSON_VERBS = split_words("""
    said says told asked argued claimed thinks thought believed wrote knew born died married lived studied graduated
    retired resigned sang starred tweeted admitted confirmed joked laughed smiled loves loved hates hated scored
    plays replied recalled moved grew taught appeared
""")
ORGANISATION_VERBS = split_words("""
    announces announced launches launched releases released unveils unveiled extends acquires acquired sues sued plans
    reports hires recalls signs offers sponsors
""")

# ---- places

COUNTRIES = split_phrases("""
    Afghanistan, Albania, Algeria, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan, Bahamas, Bahrain,
    Bangladesh, Barbados, Belarus, Belgium, Belize, Bolivia, Bosnia, Botswana, Brazil, Britain, Great Britain,
    Bulgaria, Burma, Cambodia, Cameroon, Canada, Chad, Chile, China, Colombia, Congo, Costa Rica, Croatia, Cuba,
    Cyprus, Czech Republic, Czechoslovakia, Denmark, Dominican Republic, Ecuador, Egypt, El Salvador, England,
    Eritrea, Estonia, Ethiopia, Fiji, Finland, France, Gambia, Georgia, Germany, East Germany, West Germany, Ghana,
    Greece, Greenland, Guatemala, Guinea, Guyana, Haiti, Holland, Honduras, Hong Kong, Hungary, Iceland, India,
    Indonesia, Iran, Iraq, Ireland, Northern Ireland, Israel, Italy, Ivory Coast, Jamaica, Japan, Jordan,
    Kazakhstan, Kenya, Korea, Kosovo, Kuwait, Laos, Latvia, Lebanon, Liberia, Libya, Lithuania, Luxembourg,
    Macedonia, Madagascar, Malawi, Malaysia, Maldives, Mali, Malta, Mauritius, Mexico, Moldova, Monaco, Mongolia,
    Montenegro, Morocco, Mozambique, Myanmar, Namibia, Nepal, Netherlands, New Zealand, Nicaragua, Niger, Nigeria,
    North Korea, Norway, Oman, Pakistan, Palestine, Panama, Papua New Guinea, Paraguay, Peru, Philippines, Poland,
    Portugal, Prussia, Puerto Rico, Qatar, Romania, Russia, Rwanda, Samoa, Saudi Arabia, Scotland, Senegal, Serbia,
    Sierra Leone, Singapore, Slovakia, Slovenia, Somalia, South Africa, South Korea, Soviet Union, USSR, Spain, Sri
    Lanka, Sudan, Sweden, Switzerland, Syria, Taiwan, Tanzania, Thailand, Tibet, Togo, Trinidad, Tunisia, Turkey,
    Uganda, Ukraine, United Arab Emirates, UAE, United Kingdom, U.K., UK, United States, United States of America,
    U.S., U.S.A., US, USA, Uruguay, Venezuela, Vietnam, Wales, Yemen, Yugoslavia, Zambia, Zimbabwe
""")
STATES = split_phrases("""
    Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida, Hawaii, Idaho,
    Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, Massachusetts, Michigan, Minnesota,
    Mississippi, Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, New Mexico, New York, North
    Carolina, North Dakota, Ohio, Oklahoma, Oregon, Pennsylvania, Rhode Island, South Carolina, South Dakota,
    Tennessee, Texas, Utah, Vermont, Virginia, West Virginia, Washington, Wisconsin, Wyoming, Ontario, Quebec,
    British Columbia, Alberta, Manitoba, Saskatchewan, Nova Scotia, New Brunswick, Newfoundland, New South Wales,
    Queensland, Tasmania, Bavaria, Saxony, Catalonia, Tuscany, Sicily, Sardinia, Lombardy, Normandy, Brittany,
    Provence, Yorkshire, Lancashire, Cornwall, Devon, Kent, Essex, Sussex, Surrey, Suffolk, Norfolk, Hampshire,
    Cheshire, Cumbria, Dorset, Somerset, Scotland, Punjab, Kashmir, Kerala, Bengal, Gujarat, Bihar, Siberia, Crimea
""")
CITIES = split_phrases("""
    Aberdeen, Abuja, Accra, Adelaide, Albany, Albuquerque, Alexandria, Amsterdam, Ankara, Antwerp, Athens, Atlanta,
    Auckland, Austin, Baghdad, Baltimore, Bangalore, Bangkok, Barcelona, Basel, Bath, Beijing, Beirut, Belfast,
    Belgrade, Berlin, Bern, Birmingham, Blackpool, Bogota, Bologna, Bolton, Bombay, Bonn, Bordeaux, Boston, Boulder,
    Bradford, Brighton, Brisbane, Bristol, Brooklyn, Bronx, Brussels, Bucharest, Budapest, Buenos Aires, Buffalo,
    Cairo, Calcutta, Calgary, Cambridge, Canberra, Cape Town, Caracas, Cardiff, Charleston, Charlotte, Chennai,
    Chicago, Christchurch, Cincinnati, Cleveland, Cologne, Columbus, Copenhagen, Coventry, Croydon, Dallas,
    Damascus, Delhi, New Delhi, Denver, Derby, Detroit, Dhaka, Doncaster, Dresden, Dubai, Dublin, Dundee, Durban,
    Durham, Düsseldorf, Edinburgh, Edmonton, El Paso, Essen, Exeter, Florence, Fort Worth, Frankfurt, Fresno, Gaza,
    Geneva, Genoa, Glasgow, Gothenburg, Granada, Grimsby, Hamburg, Hamilton, Hanoi, Hartford, Havana, Helsinki,
    Hiroshima, Ho Chi Minh City, Hollywood, Honolulu, Houston, Hull, Hyderabad, Indianapolis, Ipswich, Islamabad,
    Istanbul, Jacksonville, Jakarta, Jerusalem, Johannesburg, Kabul, Kampala, Kansas City, Karachi, Kathmandu, Kiev,
    Kingston, Knoxville, Kolkata, Kraków, Kuala Lumpur, Kyoto, Lagos, Lahore, Las Vegas, Vegas, Leeds, Leicester,
    Leipzig, Lima, Lisbon, Liverpool, London, Los Angeles, L.A., LA, Louisville, Lyon, Madrid, Malibu, Manchester,
    Manhattan, Manila, Marseille, Mecca, Melbourne, Memphis, Mexico City, Miami, Milan, Milwaukee, Minneapolis,
    Minsk, Montreal, Moscow, Mumbai, Munich, Nagasaki, Nairobi, Naples, Nashville, New Orleans, New York City, NYC,
    NY, Newark, Newcastle, Norwich, Nottingham, Nuremberg, Oakland, Oklahoma City, Omaha, Orlando, Osaka, Oslo,
    Ottawa, Oxford, Palermo, Paris, Perth, Peterborough, Philadelphia, Philly, Phoenix, Pittsburgh, Plymouth,
    Portland, Porto, Portsmouth, Prague, Preston, Pretoria, Queens, Raleigh, Reading, Riga, Rio, Rio de Janeiro,
    Riyadh, Rochester, Rome, Rotterdam, Sacramento, Salford, Salt Lake City, Salzburg, San Antonio, San Diego, San
    Francisco, S.F., San Jose, Santa Monica, Santiago, Sao Paulo, São Paulo, Sarajevo, Savannah, Seattle, Seoul,
    Seville, Shanghai, Sheffield, Shenzhen, Sofia, Southampton, St. Louis, St Louis, St. Petersburg, Stockholm,
    Stockport, Stuttgart, Sunderland, Swansea, Swindon, Sydney, Syracuse, Tallinn, Tampa, Tehran, Tel Aviv, The
    Hague, Tokyo, Toledo, Toronto, Trieste, Tripoli, Tucson, Tulsa, Turin, Utrecht, Valencia, Vancouver, Venice,
    Versailles, Vienna, Vilnius, Wakefield, Warsaw, Washington D.C., Washington DC, D.C., DC, Watford, Wellington,
    Wigan, Winnipeg, Wolverhampton, Yokohama, York, Zagreb, Zurich, Zürich
""")
OTHER_PLACES = split_phrases("""
    Africa, West Africa, North Africa, Antarctica, Asia, Europe, Eastern Europe, North America, South America, Latin
    America, America, Middle East, Scandinavia, Balkans, Caribbean, Atlantic, Atlantic Ocean, Pacific, Pacific
    Ocean, Indian Ocean, Mediterranean, North Sea, Baltic Sea, Black Sea, Persian Gulf, Alps, Himalayas, Andes,
    Rocky Mountains, Everest, Nile, Amazon, Danube, Rhine, Thames, Mississippi River, Sahara, Wall Street, Times
    Square, Central Park, Broadway, Disneyland, Disney World, Heathrow, White House, Buckingham Palace, Westminster,
    Wembley, Old Trafford, Anfield, Stamford Bridge, Wimbledon, Silicon Valley, Bay Area, Midwest, West Coast, East
    Coast, Long Island, Staten Island, Earth, Mars, Venus, Jupiter, Eiffel Tower, Big Ben, Hudson River,
    Seine, Volga, Ganges, Yangtze, Mekong, Tigris, Euphrates, Great Lakes, Gulf of Mexico, Suez Canal, Panama Canal,
    English Channel
""")
PLACES = COUNTRIES | STATES | CITIES | OTHER_PLACES
PLACE_HEADS = split_words("""
    River Lake Mountain Mountains Island Islands Valley Bay Beach Creek Falls Forest Desert Canyon Ocean Sea
    Peninsula Coast County Township Province District Village Avenue Ave Street St. Road Rd Boulevard Blvd Lane
    Highway Square Bridge Park Hill Hills Station Airport Stadium Arena Castle Palace Tower Building Plaza Mall Cafe
    Hotel Inn Theatre Theater Cemetery Railroad Railway Harbor Harbour Fort City Town House
""")
MOVES = split_words("live lives lived living stay staying moved moving born flight flying trip welcome travel")

# ---- organisations, products, works

COMPANIES = split_phrases("""
    Google, Microsoft, Apple, Amazon, IBM, Intel, Dell, HP, Hewlett-Packard, Cisco, Oracle, Samsung, Sony, Nokia,
    Motorola, HTC, LG, Panasonic, Toshiba, Nintendo, Sega, Yahoo, eBay, PayPal, Adobe, AT&T, Verizon, T-Mobile,
    Vodafone, Orange, Sprint, Comcast, Virgin, Walmart, Wal-Mart, Target, Tesco, Asda, Sainsburys, Primark, Ikea,
    IKEA, Starbucks, McDonalds, McDonald's, Burger King, KFC, Subway, Nandos, Dominos, Pizza Hut, Taco Bell, Wendys,
    Costa, Greggs, Walgreens, Best Buy, Costco, Nike, Adidas, Puma, Gucci, Prada, Topshop, Zara, Ford, Toyota,
    Honda, BMW, Mercedes, Audi, Volkswagen, Nissan, Tesla, Boeing, Airbus, Ryanair, British Airways, Lufthansa, BP,
    Shell, Exxon, Goldman Sachs, JP Morgan, HSBC, Barclays, Lloyds, Bank of America, Citibank, Visa, Mastercard,
    Pepsi, Coca-Cola, Coca Cola, Disney, Pixar, Warner Bros, Warner Bros., Universal, Paramount, Marvel, Sony Music,
    EMI, Motown, Def Jam, Columbia Records, General Motors, General Electric, Siemens, Uber, Airbnb, Dropbox,
    Mozilla
""")
NETWORKS = split_phrases("""
    Facebook, Twitter, YouTube, Youtube, MySpace, Myspace, Instagram, Snapchat, Tumblr, Pinterest, LinkedIn,
    Linkedin, Reddit, Skype, WhatsApp, Flickr, Ustream, Vine, Wikipedia, Foursquare, Spotify, Groupon, Kickstarter,
    SoundCloud
""")
MEDIA = split_phrases("""
    BBC, BBC News, ITV, Channel 4, Sky, Sky News, Sky Sports, CNN, Fox News, FOX, NBC, ABC, CBS, HBO, MTV, ESPN,
    PBS, NPR, Al Jazeera, Reuters, Associated Press, New York Times, The New York Times, NY Times, Washington Post,
    Wall Street Journal, WSJ, The Guardian, Guardian, Daily Mail, The Sun, Telegraph, Huffington Post, TechCrunch,
    Mashable, Billboard, Rolling Stone, BuzzFeed, CNBC, Bloomberg, Forbes, The Times, The Economist, NME
""")
INSTITUTIONS = split_phrases("""
    NASA, NATO, UN, United Nations, EU, European Union, FBI, CIA, NSA, NHS, WHO, UNICEF, UNESCO, IMF, World Bank,
    Congress, Senate, House of Commons, House of Lords, Parliament, Supreme Court, Pentagon, Labour, Labour Party,
    Tories, Lib Dems, UKIP, SNP, GOP, Republican Party, Democratic Party, Conservative Party, Tea Party, Hamas,
    Hezbollah, Taliban, Al Qaeda, ISIS, Boko Haram, Red Cross, Greenpeace, Amnesty International, Harvard, Yale,
    Stanford, MIT, UCLA, FIFA, UEFA, NFL, NBA, MLB, NHL, NCAA, WWE, UFC, ICC, BCCI, NRA, IRS, Navy, Army, Air Force,
    Royal Navy, Marine Corps, Gestapo, KGB, Vatican
""")
TEAMS = split_phrases("""
    Arsenal, Chelsea, Man Utd, Man United, Manchester United, MUFC, Man City, Manchester City, Liverpool FC, LFC,
    Everton, Spurs, Tottenham, Fulham, Aston Villa, West Ham, QPR, Stoke City, Wigan Athletic, Norwich City,
    Newcastle United, NUFC, Leeds United, Celtic, Rangers, Barcelona, Barca, FC Barcelona, Real Madrid, Atletico
    Madrid, Bayern, Bayern Munich, Dortmund, Juventus, Juve, AC Milan, Inter Milan, PSG, Ajax, Benfica, Galatasaray,
    Lakers, Celtics, Heat, Miami Heat, Knicks, Bulls, Chicago Bulls, Mavs, Mavericks, Rockets, Warriors, Thunder,
    Clippers, Cavs, Cavaliers, Pistons, Nuggets, Yankees, Red Sox, Mets, Phillies, Dodgers, Giants, Cubs, White Sox,
    Braves, Cardinals, Padres, Astros, Orioles, Blue Jays, Tigers, Cowboys, Dallas Cowboys, Patriots, Packers, Green
    Bay Packers, Steelers, Ravens, Colts, Jets, Eagles, Redskins, Saints, Falcons, Vikings, Bears, Chargers,
    Raiders, Broncos, 49ers, Niners, Lions, Bills, Chiefs, Panthers, Buccaneers, Bucs, Rams, Nationals, Marlins,
    Pirates, Reds, Brewers, Royals, Twins, Mariners, Angels, Athletics, Rockies, Diamondbacks, Phoenix Suns, Suns,
    Grizzlies, Pelicans, Hornets, Hawks, Magic, Wizards, Raptors, Nets, 76ers, Sixers, Pacers, Bucks, Timberwolves,
    Trail Blazers, Blazers, Kings, Jazz, Seahawks, Dolphins, Bengals, Browns, Texans, Titans, Jaguars, Bruins, Maple
    Leafs, Canucks, Flyers, Penguins, Blackhawks, Canadiens, Buckeyes, Longhorns, Wallabies, All Blacks, Springboks
""")
BANDS = split_phrases("""
    The Beatles, Beatles, Rolling Stones, The Rolling Stones, Pink Floyd, Led Zeppelin, Queen, The Who, The Clash,
    The Smiths, Oasis, Blur, Coldplay, Radiohead, Muse, U2, R.E.M., Nirvana, Pearl Jam, Metallica, Iron Maiden,
    Black Sabbath, AC/DC, Guns N' Roses, Green Day, Blink 182, Blink-182, Fall Out Boy, Paramore, My Chemical
    Romance, Linkin Park, Maroon 5, Foo Fighters, Arctic Monkeys, The Killers, Kings of Leon, Arcade Fire, Black
    Eyed Peas, Spice Girls, Girls Aloud, Take That, Westlife, JLS, The Wanted, The Saturdays, Jonas Brothers, Big
    Time Rush, 5 Seconds of Summer, Backstreet Boys, NSYNC, Girls Generation, SNSD, Super Junior, SHINee, Big Bang,
    EXO, 2NE1, Daft Punk, Depeche Mode, Duran Duran, Fleetwood Mac, ABBA, Bee Gees, Wu-Tang Clan
""")
ORGANISATIONS = COMPANIES | NETWORKS | MEDIA | INSTITUTIONS | TEAMS | BANDS
CORPORATION_HEADS = split_words("""
    Inc Inc. Ltd Ltd. LLC Corp Corp. Corporation Company Co. PLC Plc GmbH Bank Airlines Airways Records Motors
    Studios Industries Enterprises Entertainment Press Times Post Tribune Herald Gazette Magazine Radio
""")
GROUP_HEADS = split_words("""
    FC F.C. United Athletic Rovers Wanderers Party Church Band Orchestra Choir Brothers Club Team Union Association
    Federation Committee Council Commission Society Foundation League Alliance Army Navy Corps Regiment Brigade
    Division Infantry Battalion Squadron Department Ministry Agency Bureau Authority Board Court Parliament Assembly
    Congress Conference
""")
SCHOOL_HEADS = split_words("University College School Academy Institute Hospital Museum Library Seminary Clinic")
PRODUCTS = split_phrases("""
    iPhone, iPhones, iPad, iPads, iPod, iPods, iPhone 4, iPhone 5, iPhone 6, iPhone 4S, iTunes, MacBook, Macbook,
    iMac, iOS, Siri, Android, Kindle, Xbox, Xbox 360, XBox, PS2, PS3, PS4, Playstation, PlayStation, Wii, PSP,
    Nintendo DS, Game Boy, Blackberry, BlackBerry, Galaxy, Galaxy S3, Nexus, Windows, Windows 7, Windows Phone,
    Windows Vista, Photoshop, Microsoft Office, Chrome, Firefox, Safari, Internet Explorer, Gmail, Google Maps,
    Google Chrome, TweetDeck, Tweetdeck, FaceTime, Coke, Diet Coke, Pepsi, Red Bull, Nutella, Oreo, Oreos, Skittles,
    Doritos, Pringles, Kit Kat, Snickers, Big Mac, Guinness, Heineken, Corona, Jack Daniels, Smirnoff, Ciroc,
    Patron, Hennessy, Prius, Mustang, Corvette, Land Rover, Range Rover, Jordans, Uggs, Lego, Barbie, GoPro, Xanax
""")
WORKS = split_phrases("""
    Glee, Twilight, New Moon, Eclipse, Breaking Dawn, Inception, Avatar, Titanic, Toy Story, Toy Story 3, Star Wars,
    Star Trek, Lost, The Lion King, Lion King, Frozen, The Hobbit, Lord of the Rings, The Hunger Games, Hunger
    Games, The Social Network, Jersey Shore, Gossip Girl, The Vampire Diaries, Vampire Diaries, True Blood, Dexter,
    Breaking Bad, Game of Thrones, The Walking Dead, Walking Dead, Mad Men, House MD, Grey 's Anatomy, How I Met
    Your Mother, Big Bang Theory, The Big Bang Theory, Friends, Family Guy, The Simpsons, Simpsons, South Park,
    Futurama, Doctor Who, Dr Who, Sherlock, Downton Abbey, EastEnders, Eastenders, Coronation Street, Hollyoaks, X
    Factor, The X Factor, XFactor, American Idol, Britain 's Got Talent, The Voice, Big Brother, SNL, Saturday Night
    Live, Sesame Street, Spongebob, iCarly, Hannah Montana, Supernatural, Sons of Anarchy, Modern Family, 30 Rock,
    The Office, Top Gear, Strictly, Halo, Halo Reach, Call of Duty, Black Ops, Modern Warfare, Minecraft, Angry
    Birds, FarmVille, Farmville, FIFA 11, FIFA 12, Pokemon, Super Mario, World of Warcraft, Skyrim, Grand Theft
    Auto, GTA, The Avengers, Bible, The Bible, Romeo and Juliet, Hamlet, Macbeth, Harry Potter and the Deathly
    Hallows, Deathly Hallows, Shrek, Finding Nemo, Iron Man, The Dark Knight, Dark Knight, Mean Girls, The Notebook,
    Scarface, Pulp Fiction, The Godfather, Jackass, Jackass 3D
""")

# ---- nationalities, languages, faiths and events, which Wikigold counts as MISC

NATIONALITIES = split_words("""
    Afghan African Albanian Algerian American Arab Arabic Argentine Armenian Asian Australian Austrian Bavarian
    Belgian Bengali Bosnian Brazilian British Bulgarian Canadian Cantonese Catalan Catholic Celtic Chilean Chinese
    Christian Christians Colombian Croatian Cuban Czech Danish Dutch Egyptian English Estonian Ethiopian European
    Filipino Finnish Flemish French Gaelic Georgian German Germans Greek Greeks Haitian Hawaiian Hebrew Hindi Hindu
    Hispanic Hungarian Icelandic Indian Indians Indonesian Iranian Iraqi Irish Islamic Israeli Italian Italians
    Jamaican Japanese Jew Jewish Jews Kenyan Korean Kurdish Latin Latino Latvian Lebanese Libyan Lithuanian Lutheran
    Malay Malaysian Maltese Mexican Mongolian Moroccan Muslim Muslims Nazi Nepali Nigerian Norman Norse Norwegian
    Orthodox Ottoman Pakistani Palestinian Persian Peruvian Polish Portuguese Protestant Prussian Roman Romanian
    Romans Russian Russians Sanskrit Scandinavian Scottish Serb Serbian Sikh Slavic Slovak Somali Soviet Spanish
    Sunni Swedish Swiss Syrian Tamil Thai Tibetan Turkish Turks Ukrainian Urdu Venezuelan Victorian Vietnamese
    Viking Welsh Yiddish Zulu Americans Buddhist Buddhism Christianity Islam Judaism Hinduism Democrat Democrats
    Republican Republicans Communist Anglican Baptist Methodist
""")
EVENT_HEADS = split_words("""
    War Wars Battle Siege Campaign Revolution Rebellion Treaty Act Award Awards Prize Medal Cup Championship
    Championships Olympics Games Festival Tour Trophy Bowl Series Tournament Open Grand Prix
""")

# ---- words that are capitalised but name nothing of the types above

CALENDAR = split_words("""
    January February March April May June July August September October November December Jan Feb Mar Apr Jun Jul
    Aug Sep Sept Oct Nov Dec Monday Tuesday Wednesday Thursday Friday Saturday Sunday Mon Tue Tues Wed Thu Thur
    Thurs Fri Sat Sun Christmas Xmas Easter Halloween Thanksgiving Ramadan Hanukkah Valentine Valentines AM PM
""")
NO_NAMES = CALENDAR | split_words("""
    I I'm I'll I've I'd Im Ill Ive A An The This That These Those My Your His Her Our Their He She It We You They RT
    DM OK Ok TV PC DVD CD DJ CEO MP PR FF FB LOL Lol OMG Omg LMAO Lmao ROFL WTF Wtf SMH Smh TGIF FYI ASAP RIP Haha
    Hahaha Hehe Ha Ah Oh Ooh Aww Awww Yay Yeah Yep Nope Hey Hi Hello Thanks Thx Thank Please Pls Congrats Ugh Damn
    Dude Bro Sis Mum Mom Dad Mama Gonna Wanna Gotta Dont Cant Video Photo VIDEO PHOTO News NEWS Update Blog Live Via
    Part Chapter Volume
""")

# Names whose lower-case forms are often words, beside those that `read_common_words` returns.
AMBIGUOUS = split_words("""
    amber angel art austin bath berlin blur browns bulls chad charlotte chase christian chrome clear costa craig
    daisy dean dexter drake drew earl eclipse exo faith ford frank frozen georgia glee glenn grace guy halo hamlet
    heather holly hull ivy jack jay jays jean jets jordan josh kent lance lee lima lost louise mali marc marvel max
    may mets mile miles mobile muse nexus nice oasis orange oscar otto pat patron paramount penny percy perth
    phoenix preston puma queens randy ray rich rick riga rio robin rocky roger rose ross roy ruby ruth safari santa
    scott sky sprint summer target turkey usher vine violet virgin visa wade ward wayne will york
""")


@cache
def read_sentences(path):
    """Returns the (words, tags) of the sentences of a two-column BIO file."""
    sentences, rows = [], []
    for line in [*locate(path).read_text(encoding="utf-8").splitlines(), ""]:
        if columns := line.split():
            rows.append((columns[0], columns[-1]))
        elif rows:
            sentences.append(tuple(zip(*rows, strict=True)))
            rows = []
    return sentences


@cache
def read_common_words(path="data:ner/gum/train.conll"):
    """Returns the words that a file writes in lower case outside names."""
    pairs = (pair for words, tags in read_sentences(path) for pair in zip(words, tags, strict=True))
    return frozenset(word for word, tag in pairs if tag == "O" and word.islower())


@cache
def read_names(path, kind):
    """Returns the names of one type in a BIO file, without those that the file also uses otherwise.

    A name of several words starts and ends with a capital. A single word is kept if at least 90 % of its occurrences,
    in lower case too, are names of this type.
    """
    names, counts = Counter(), Counter()
    for words, tags in read_sentences(path):
        counts.update(word.lower() for word in words)
        start = 0
        for end in range(1, len(tags) + 1):
            if end == len(tags) or tags[end] != f"I-{kind}":
                if tags[start].endswith(f"-{kind}"):
                    names[words[start:end]] += 1
                start = end
    return frozenset(
        " ".join(name)
        for name, count in names.items()
        if len(name[0]) > 1 and name[0][0].isupper() and name[-1][0].isupper() and name[0] not in NO_NAMES
        if len(name) > 1 or count >= 0.9 * counts[name[0].lower()]
    )


def read_all(paths, kind):
    """Returns the names of one type in several files."""
    return frozenset().union(*(read_names(path, kind) for path in paths))


def is_common(word):
    """True for words that are no names in lower case."""
    return word in NO_NAMES or word.lower() in read_common_words() or word.lower() in AMBIGUOUS


def pick_clear(phrases):
    """Returns the phrases that are names in any case: "london", but not "reading" or "us"."""
    return frozenset(phrase for phrase in phrases if len(phrase) > 2 and not all(map(is_common, phrase.split())))


def is_capitalised(word):
    return word[:1].isupper() and word not in NO_NAMES and all(letter.isalnum() or letter in ".-'&" for letter in word)


def is_start(words, at):
    """True if a sentence may begin at this word, so that its capital says little."""
    before = words[at - 1] if at else "."
    return before == "RT" or not (before[0].isalnum() or before in {",", "&", "'s", "n't", "#"})


def has_free_case(words):
    """True if the capitals of a sentence are no evidence of names: in headlines, shouting and other languages."""
    letters = [word for word in words[1:] if word.isalpha() and len(word) > 1]
    lower = [word for word in letters if word.islower()]
    return len(letters) > 4 and (2 * len(lower) < len(letters) or 2 * sum(map(is_common, lower)) < len(lower))


def find_runs(words, links=()):
    """Yields the spans of capitalised words, over up to two words of `links` between them.

    A common word at the start of a sentence is left out.
    """
    start = 0
    while start < len(words):
        end = start + 1
        if is_capitalised(words[start]) and not (is_start(words, start) and is_common(words[start])):
            at = end
            while at < len(words) and at - end < 3:
                if is_capitalised(words[at]):
                    end = at + 1
                elif words[at] not in links:
                    break
                at += 1
            yield start, end
        start = end


def find_unknown(words, at_start=False):
    """Yields capitalised words that aren't common words, where capitals are evidence."""
    if not has_free_case(words):
        for start, end in find_runs(words):
            is_weak = words[start - 1 : start] == ("#",) or (not at_start and is_start(words, start))
            if not is_weak and all(word[1:].islower() and not is_common(word) for word in words[start:end]):
                yield start, end


def find_full_names(words):
    """Yields a first name, initials and surnames: "John F. Kennedy"."""
    for start, end in find_runs(words, links={"de", "van", "von", "der", "la", "bin", "al", "da", "di"}):
        first = next((at for at in range(start, end) if words[at] in FIRST_NAMES), end)
        if 1 < end - first < 5:
            yield first, end


def find_common_first_names(words):
    """Yields first names that are words too, such as "Mark", inside a sentence."""
    if not has_free_case(words):
        for at, word in enumerate(words):
            if word in FIRST_NAMES and is_common(word) and not is_start(words, at):
                yield at, at + 1


def find_destinations(words):
    """Yields an unknown word in lower case after "live in" or "moved to"."""
    for at, word in enumerate(words[2:], 2):
        is_cue = words[at - 1] in {"in", "to"} and words[at - 2].lower() in MOVES
        if is_cue and word.isalpha() and word.islower() and not is_common(word):
            yield at, at + 1


def find_titled(words):
    """Yields titles with the capitalised words after them, and the number of titles."""
    for start, end in find_runs(words):
        count = next((i for i, word in enumerate(words[start:end]) if word not in TITLES), 0)
        if count and end - start - count < 4:
            yield start, end, count


def find_ending(words, heads, links=("of", "the", "'s", "&", "for")):
    """Yields names that end with a head, or go on with "of": "Durham University", "Ministry of Defence"."""
    for start, end in find_runs(words, links):
        while start < end and (words[start] in TITLES or words[start] in links):
            start += 1
        while start < end:
            at = next((at for at in range(start, end) if words[at] in heads), end)
            stop = at + 1
            if words[stop : stop + 1] == ("of",) and stop + 1 < end:  # the next head begins another name
                stop = next((i for i in range(stop, end) if words[i] in heads), end)
                stop = end if stop == end else at + 1
            if at < end and stop > start + 1:
                yield start, stop
            start = stop
            while start < end and not is_capitalised(words[start]):
                start += 1


def find_after(words, cues):
    """Yields capitalised words after a cue, or after a cue and an article."""
    for start, end in find_runs(words):
        at = start - 1
        if at > 0 and words[at].lower() == "the":
            at -= 1
        if at >= 0 and words[at].lower() in cues:
            yield start, end


def find_before(words, cues, longest=3):
    """Yields up to three capitalised words before a cue."""
    for start, end in find_runs(words):
        if end < len(words) and end - start <= longest and words[end] in cues:
            yield start, end
