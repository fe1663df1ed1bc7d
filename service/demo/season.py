"""The season: venues, organizers, and events with their places in the weeks."""

from __future__ import annotations

from dataclasses import dataclass

VENUES = {
    "hall": {"venue": "Grand Hall", "address": "1 Market Square", "city": "Freiburg", "country": "Germany",
             "zip": "79098", "geo_lat": 47.9959, "geo_lng": 7.8522, "phone": "+49 761 5551",
             "description": "The old corn exchange, with 400 seats and a balcony."},
    "stage": {"venue": "Riverside Stage", "address": "Quai des Arts", "city": "Strasbourg",
              "country": "France", "zip": "67000", "geo_lat": 48.5734, "geo_lng": 7.7521},
    "garden": {"venue": "Botanic Garden", "address": "Schänzlestrasse 1", "city": "Freiburg",
               "country": "Germany", "geo_lat": 48.0061, "geo_lng": 7.8623},
    "library": {"venue": "University Library", "address": "Platz der Universität 2", "city": "Freiburg",
                "country": "Germany", "geo_lat": 47.9941, "geo_lng": 7.8457},
    "museum": {"venue": "Museum of Modern Times", "address": "Steinenberg 7", "city": "Basel",
               "country": "Switzerland", "geo_lat": 47.5544, "geo_lng": 7.5906},
    "park": {"venue": "Lakeside Park", "address": "Seeparkweg", "city": "Freiburg", "country": "Germany",
             "geo_lat": 48.0087, "geo_lng": 7.8189},
    "cinema": {"venue": "Kandelhof Cinema", "address": "Kandelstrasse 27", "city": "Freiburg",
               "country": "Germany", "geo_lat": 48.0047, "geo_lng": 7.8516},
    "loft": {"venue": "The Loft", "address": "55 Water Street", "city": "New York", "country": "USA",
             "state": "NY", "geo_lat": 40.7033, "geo_lng": -73.9903},
}  # fmt: skip
ORGANIZERS = {
    "arts": {"organizer": "City Arts Council", "email": "arts@city.example.org",
             "website": "https://arts.example.org"},
    "chess": {"organizer": "Chess Club 1887", "phone": "+49 761 5550"},
    "friends": {"organizer": "Friends of the Library", "email": "friends@library.example.org"},
    "sports": {"organizer": "Running Club", "website": "https://run.example.org"},
    "coders": {"organizer": "Python Users Upper Rhine", "website": "https://python.example.org"},
}  # fmt: skip


@dataclass(frozen=True)
class Series:
    """An event that takes place several times."""

    title: str
    text: str
    picture: str
    categories: tuple[str, ...]
    tags: tuple[str, ...]
    venue: str
    organizer: str
    cost: str
    weekday: int
    """0 for Monday."""
    hour: float
    hours: float
    every: int = 1
    """Weeks between two of them."""
    times: int = 12
    begins: int = 0
    """The week of the first one; the season begins six weeks before the current one."""
    zone: str = "Europe/Berlin"
    all_day: bool = False
    featured: bool = False


# The examples of the API documentation refer to the first event, its venue and its organizer.
SEASON = [
    Series("Summer Concert", "The city orchestra plays Dvořák and Brahms in the courtyard.\n\nIf it rains, "
           "the concert moves to the foyer. Tickets: https://tickets.example.org",
           "concert", ("Concerts",), ("outdoor", "classical"), "hall", "arts", "€18 – €32", 3, 20, 2, 4, 4, 7,
           featured=True),
    Series("Farmers’ Market", "Vegetables, cheese and bread from the villages around. Bring a bag and time.",
           "market", ("Markets",), ("family", "outdoor"), "hall", "arts", "Free", 5, 8, 5, times=18),
    Series("Chess Evening", "Casual games and a lesson for beginners at seven. Boards are there.",
           "chess", ("Clubs",), ("games",), "library", "chess", "5 €", 1, 19, 3, times=18),
    Series("Open-Air Jazz", "Two sets, one river. This week: a trio with a guest from Marseille.",
           "jazz", ("Concerts",), ("jazz", "outdoor"), "stage", "arts", "€15", 4, 19.5, 3, 2, 9),
    Series("Guided Garden Walk", "What is in bloom, and why. The walk takes two hours at an easy pace, also "
           "for wheelchairs.", "garden", ("Tours",), ("family", "outdoor"), "garden", "friends", "8 €",
           6, 14, 2, 2, 9, 1),
    Series("Reading: New Voices", "Three young authors read from their first books. Talk and wine after.",
           "books", ("Literature",), ("books",), "library", "friends", "", 2, 18, 2, 3, 6, 1),
    Series("Poetry Slam", "Eight poets, six minutes each, and the audience decides.",
           "poetry", ("Literature",), ("books", "young"), "stage", "friends", "10 €", 5, 20, 3, 4, 5, 2,
           featured=True),
    Series("Python User Group", "Two talks and pizza. Beginners are welcome; bring questions.",
           "code", ("Clubs",), ("technology",), "library", "coders", "Free", 3, 19, 2, 4, 5, 1),
    Series("Silent Film with Piano", "A classic of the twenties, and live music made for it.",
           "film", ("Film",), ("music", "classical"), "cinema", "arts", "€9 – €12", 5, 20.5, 2, 2, 9, 1),
    Series("Film Breakfast", "Coffee at ten, the film at eleven.", "film", ("Film",), ("family",), "cinema",
           "arts", "€14", 6, 10, 3.5, 2, 9),
    Series("Exhibition: Light and Line", "Drawings and light sculptures from five decades, on three floors."
           "\n\nClosed on Mondays.", "exhibition", ("Exhibitions",), ("art",), "museum", "arts", "CHF 16",
           2, 0, 24 * 25, 9, 2, 4, "Europe/Zurich", all_day=True),
    Series("Festival of Lights", "Four evenings of lanterns, music and food around the lake.",
           "festival", ("Festivals",), ("family", "outdoor"), "park", "arts", "Free", 3, 17, 24 * 3 + 5,
           10, 2, 6, featured=True),
    Series("Lake Run", "Five or ten kilometres around the lake. Register on site until nine.",
           "run", ("Sports",), ("outdoor", "young"), "park", "sports", "12 €", 5, 10, 3, 4, 5, 2),
    Series("Parents’ Café", "Toys, tea and talk.", "market", ("Clubs",), ("family",), "park", "friends",
           "Free", 5, 15, 2, 2, 9, 0),
    Series("Workshop: Print Your Own Poster", "Linocut from the first sketch to the finished print. "
           "Material is included.", "exhibition", ("Workshops",), ("art", "young"), "museum", "arts",
           "CHF 45", 5, 13, 4, 2, 8, 0, "Europe/Zurich"),
    Series("Online Talk: Cities at Night", "A lecture from New York, with questions from the hall here.",
           "code", ("Talks",), ("technology", "online"), "loft", "friends", "Free", 2, 18, 1.5, 3, 5, 2,
           "America/New_York"),
    Series("Online Talk: Gardens of Kyoto", "A walk through four gardens with their head gardener, live.",
           "garden", ("Talks",), ("online",), "garden", "friends", "Free", 0, 19, 1.5, 4, 4, 3, "Asia/Tokyo"),
    Series("Day of Open Doors", "All workshops, studios and stages of the quarter are open.", "festival",
           ("Festivals",), ("family",), "hall", "arts", "Free", 5, 0, 23.9, 10, 2, 7, all_day=True),
]  # fmt: skip
