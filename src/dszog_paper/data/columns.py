"""The columns of Adult, COMPAS and Communities, and the values they may take."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# ------------------------------------------------------------------------------ Adult

ADULT = _words("""
    age workclass fnlwgt education education-num marital-status occupation relationship
    race sex capital-gain capital-loss hours-per-week native-country income
    """)
ADULT_NUMBERS = ("education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_CHOICES = {
    "workclass": _words("""
        Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov
        Without-pay Never-worked
        """),
    "marital-status": _words("""
        Married-civ-spouse Divorced Never-married Separated Widowed
        Married-spouse-absent Married-AF-spouse
        """),
    "occupation": _words("""
        Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty
        Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing
        Transport-moving Priv-house-serv Protective-serv Armed-Forces
        """),
    "relationship": _words(
        "Wife Own-child Husband Not-in-family Other-relative Unmarried"
    ),
}
ADULT_RACES = _words("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black")
ADULT_AGES = (17, 26, 33, 41, 50)
"""Where the age groups start; they are those of a9a."""

# ----------------------------------------------------------------------------- COMPAS

COMPAS = _words("""
    sex age age_cat race juv_fel_count juv_misd_count juv_other_count priors_count
    days_b_screening_arrest c_days_from_compas c_charge_degree decile_score
    score_text v_decile_score v_score_text is_recid is_violent_recid start end event
    two_year_recid
    """)
COMPAS_NUMBERS = ("juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
COMPAS_RACES = (
    "African-American",
    "Caucasian",
    "Hispanic",
    "Other",
    "Asian",  # 32 people
    "Native American",  # 18 people
)
COMPAS_AGES = ("Less than 25", "25 - 45", "Greater than 45")

# ------------------------------------------------------------------------ Communities

COMMUNITIES = _words("""
    state county community communityname fold population householdsize racepctblack
    racePctWhite racePctAsian racePctHisp agePct12t21 agePct12t29 agePct16t24
    agePct65up numbUrban pctUrban medIncome pctWWage pctWFarmSelf pctWInvInc
    pctWSocSec pctWPubAsst pctWRetire medFamInc perCapInc whitePerCap blackPerCap
    indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov
    PctLess9thGrade PctNotHSGrad PctBSorMore PctUnemployed PctEmploy PctEmplManu
    PctEmplProfServ PctOccupManu PctOccupMgmtProf MalePctDivorce MalePctNevMarr
    FemalePctDiv TotalPctDiv PersPerFam PctFam2Par PctKids2Par PctYoungKids2Par
    PctTeen2Par PctWorkMomYoungKids PctWorkMom NumIlleg PctIlleg NumImmig
    PctImmigRecent PctImmigRec5 PctImmigRec8 PctImmigRec10 PctRecentImmig
    PctRecImmig5 PctRecImmig8 PctRecImmig10 PctSpeakEnglOnly PctNotSpeakEnglWell
    PctLargHouseFam PctLargHouseOccup PersPerOccupHous PersPerOwnOccHous
    PersPerRentOccHous PctPersOwnOccup PctPersDenseHous PctHousLess3BR MedNumBR
    HousVacant PctHousOccup PctHousOwnOcc PctVacantBoarded PctVacMore6Mos
    MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart OwnOccMedVal
    OwnOccHiQuart RentLowQ RentMedian RentHighQ MedRent MedRentPctHousInc
    MedOwnCostPctInc MedOwnCostPctIncNoMtg NumInShelters NumStreet PctForeignBorn
    PctBornSameState PctSameHouse85 PctSameCity85 PctSameState85 LemasSwornFT
    LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq
    LemasTotReqPerPop PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite
    PctPolicBlack PctPolicHisp PctPolicAsian PctPolicMinor OfficAssgnDrugUnits
    NumKindsDrugsSeiz PolicAveOTWorked LandArea PopDens PctUsePubTrans PolicCars
    PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn
    PolicBudgPerPop ViolentCrimesPerPop
    """)
COMMUNITIES_LABEL = "ViolentCrimesPerPop"
COMMUNITIES_NOT_PREDICTIVE = ("state", "county", "community", "communityname", "fold")
COMMUNITIES_MOSTLY_MISSING = _words("""
    LemasSwornFT LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq
    LemasTotReqPerPop PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite
    PctPolicBlack PctPolicHisp PctPolicAsian PctPolicMinor OfficAssgnDrugUnits
    NumKindsDrugsSeiz PolicAveOTWorked PolicCars PolicOperBudg LemasPctPolicOnPatr
    LemasGangUnitDeploy PolicBudgPerPop
    """)
COMMUNITIES_SENSITIVE = _words("""
    racepctblack racePctWhite racePctAsian racePctHisp whitePerCap blackPerCap
    indianPerCap AsianPerCap OtherPerCap HispPerCap PctSpeakEnglOnly
    PctNotSpeakEnglWell PctForeignBorn
    """)
"""Those of the 18 columns used in the literature that are not mostly missing."""
