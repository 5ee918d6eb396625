"""Which form is written most; made by ``scripts/count_habits.py``."""

from __future__ import annotations

from typing import Any

#: By question a decision tree: the answer, in how many of how many cases it was so; the look that tells
#: more, and the trees of its values that tell otherwise.
HABITS: dict[str, Any] = {
    "else": ("rest", 26754, 35627, "fits", {
        "": ("rest", 9707, 14722, "room", {
            "1": ("rest", 5718, 9691, "size", {
                "1": ("else", 3261, 4717, "kind", {
                    "raise": ("rest", 430, 575, "place", {
                        "Try": ("else", 22, 37),
                        "elif": ("else", 25, 26),
                        "if": ("rest", 54, 92, "ends", {
                            "raise": ("else", 13, 14),
                        }),
                    }),
                    "return": ("else", 69, 122, "before", {
                        "2": ("rest", 36, 52),
                    }),
                    "value": ("else", 2871, 3810, "test", {
                        "and": ("else", 270, 447, "before", {
                            "2": ("rest", 134, 252, "values", {
                                "": ("else", 74, 136),
                            }),
                        }),
                        "not": ("rest", 219, 409, "values", {
                            "": ("else", 127, 253, "own", {
                                "2": ("rest", 37, 44),
                            }),
                            "alike": ("else", 51, 90),
                        }),
                    }),
                }),
                "2": ("rest", 410, 660, "test", {
                    "": ("rest", 210, 411, "own", {
                        "2": ("else", 43, 56),
                        "3": ("else", 11, 17),
                        "4": ("else", 22, 30),
                    }),
                }),
            }),
            "2": ("rest", 1628, 2085, "size", {
                "1": ("rest", 257, 499, "own", {
                    "2": ("else", 36, 53),
                    "3": ("else", 17, 28),
                    "4": ("else", 55, 76),
                }),
                "2": ("rest", 103, 164, "own", {
                    "2": ("else", 12, 15),
                    "4": ("else", 12, 16),
                }),
            }),
        }),
        "all": ("rest", 1521, 2512, "kind", {
            "value": ("else", 942, 1748, "size", {
                "1": ("else", 822, 1325, "ends", {
                    "falls": ("rest", 15, 23),
                    "return": ("rest", 90, 130),
                    "value": ("else", 618, 989, "test", {
                        "and": ("rest", 50, 90, "doc", {
                            "True": ("else", 25, 41),
                        }),
                        "not": ("rest", 82, 129),
                    }),
                }),
                "2": ("rest", 56, 98, "test", {
                    "": ("else", 33, 61, "values", {
                        "": ("rest", 12, 19),
                    }),
                }),
                "3": ("rest", 40, 64),
                "4": ("rest", 41, 57),
                "6": ("rest", 150, 175),
            }),
        }),
        "more": ("rest", 11158, 13544, "size", {
            "1": ("rest", 3834, 5610, "kind", {
                "if": ("else", 79, 117),
                "value": ("rest", 2143, 3619, "ends", {
                    "raise": ("else", 218, 351),
                    "value": ("rest", 1626, 2783, "values", {
                        "alike": ("else", 595, 1153, "test", {
                            "and": ("rest", 95, 141),
                            "not": ("rest", 67, 104),
                        }),
                    }),
                }),
            }),
        }),
    }),
    "elif": ("rest", 18938, 27294, "room", {
        "": ("rest", 9469, 13647, "fits", {
            "": ("rest", 1068, 1604, "chain", {
                "elif": ("elif", 218, 270),
                "else": ("elif", 166, 259, "count", {
                    "2": ("rest", 13, 17),
                    "3": ("rest", 34, 38),
                }),
            }),
            "all": ("rest", 122, 211, "count", {
                "1": ("elif", 71, 95),
            }),
            "more": ("rest", 6479, 8813, "count", {
                "1": ("elif", 1504, 2459, "chain", {
                    "else": ("elif", 593, 796, "kind", {
                        "continue": ("rest", 13, 20),
                        "raise": ("rest", 79, 111),
                    }),
                    "if": ("rest", 643, 975, "place", {
                        "While": ("rest", 12, 23, "doc", {
                            "True": ("elif", 10, 13),
                        }),
                        "elif": ("elif", 42, 42),
                        "if": ("rest", 307, 485, "kind", {
                            "value": ("rest", 189, 338, "doc", {
                                "False": ("elif", 116, 224, "values", {
                                    "constant": ("rest", 20, 25),
                                }),
                            }),
                        }),
                    }),
                }),
                "2": ("rest", 1458, 1941, "chain", {
                    "elif": ("elif", 189, 268, "kind", {
                        "raise": ("rest", 22, 34),
                    }),
                }),
            }),
            "none": ("rest", 1695, 2840, "chain", {
                "elif": ("elif", 584, 648, "test", {
                    "not": ("rest", 22, 35),
                }),
                "else": ("elif", 291, 408, "ends", {
                    "falls": ("rest", 34, 47),
                    "value": ("rest", 35, 38),
                }),
            }),
            "some": ("rest", 105, 179, "chain", {
                "elif": ("elif", 49, 54),
                "else": ("elif", 11, 14),
            }),
        }),
        "0": ("rest", 5980, 9572, "chain", {
            "elif": ("elif", 1573, 1779, "kind", {
                "raise": ("rest", 83, 162, "test", {
                    "": ("elif", 35, 67, "place", {
                        "if": ("rest", 9, 12),
                    }),
                    "and": ("elif", 28, 37),
                }),
            }),
            "else": ("elif", 961, 1292, "ends", {
                "falls": ("rest", 110, 204, "place", {
                    "": ("elif", 32, 58, "kind", {
                        "raise": ("rest", 21, 23),
                    }),
                    "elif": ("elif", 21, 21),
                }),
                "value": ("rest", 99, 129, "subject", {
                    "True": ("elif", 14, 23),
                }),
            }),
        }),
        "1": ("rest", 2653, 3126, "count", {
            "1": ("rest", 356, 612, "kind", {
                "if": ("elif", 56, 61),
                "value": ("rest", 198, 378, "chain", {
                    "elif": ("elif", 74, 98),
                    "else": ("elif", 79, 153, "own", {
                        "1": ("rest", 56, 98),
                    }),
                }),
            }),
        }),
    }),
    "join": ("else", 6345, 7747, "fits", {
        "": ("else", 875, 1045, "count", {
            "4": ("guard", 61, 97, "is if", {
                "False": ("else", 34, 67, "size", {
                    "6": ("guard", 29, 50),
                }),
            }),
        }),
        "all": ("else", 80, 130, "count", {
            "3": ("guard", 11, 12),
            "4": ("guard", 15, 22),
        }),
        "more": ("else", 3936, 5002, "count", {
            "2": ("else", 403, 609, "size", {
                "6": ("guard", 94, 149, "place", {
                    "": ("guard", 38, 52, "own", {
                        "5": ("else", 12, 16),
                    }),
                }),
            }),
            "3": ("else", 153, 283, "place", {
                "": ("guard", 61, 100, "inner", {
                    "Assign": ("else", 9, 12),
                }),
            }),
            "4": ("guard", 526, 702, "place", {
                "For": ("guard", 111, 172, "inner", {
                    "AugAssign": ("else", 14, 16),
                    "If": ("else", 14, 23),
                }),
                "elif": ("else", 25, 25),
                "if": ("else", 20, 26),
            }),
        }),
        "some": ("guard", 31, 55, "count", {
            "1": ("else", 20, 25),
        }),
    }),
    "guard": ("nested", 7177, 9832, "fits", {
        "": ("nested", 985, 1296, "size", {
            "12": ("guard", 91, 123),
            "3": ("nested", 116, 149, "test", {
                "not a comparison": ("guard", 13, 13),
            }),
            "9": ("guard", 20, 27),
        }),
        "all": ("guard", 269, 337, "test", {
            "comparison": ("nested", 16, 17),
        }),
        "more": ("nested", 4613, 6544, "size", {
            "10": ("guard", 92, 139),
            "11": ("guard", 54, 83, "test", {
                "BoolOp": ("nested", 10, 15),
            }),
            "12": ("guard", 615, 824, "test", {
                "Attribute": ("guard", 30, 58, "before", {
                    "2": ("nested", 14, 17),
                }),
                "comparison": ("nested", 39, 41),
            }),
            "2": ("nested", 687, 838, "test", {
                "not a comparison": ("guard", 39, 40),
            }),
            "3": ("nested", 454, 659, "test", {
                "not a comparison": ("guard", 40, 40),
            }),
            "4": ("nested", 293, 436, "test", {
                "not a comparison": ("guard", 26, 27),
            }),
            "5": ("nested", 191, 320, "test", {
                "not": ("guard", 30, 48),
                "not a comparison": ("guard", 22, 22),
            }),
            "6": ("nested", 144, 249, "test", {
                "not a comparison": ("guard", 23, 23),
            }),
            "7": ("guard", 112, 202, "test", {
                "Attribute": ("nested", 9, 13),
                "BoolOp": ("guard", 19, 36, "size around", {
                    "more": ("nested", 10, 14),
                }),
                "Call": ("nested", 19, 29),
                "comparison": ("nested", 20, 20),
            }),
            "8": ("nested", 89, 169, "test", {
                "Call": ("guard", 16, 24),
                "not": ("guard", 22, 28),
                "not a comparison": ("guard", 17, 17),
            }),
            "9": ("guard", 74, 119, "test", {
                "comparison": ("nested", 12, 12),
            }),
        }),
        "some": ("guard", 42, 63),
    }),
}
